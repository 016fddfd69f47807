/** What containers see and what they may: names, addresses, processes, users, rights, variables, limits; on real ones. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { PodSpec } from "../../src/model/generated/types.ts";
import { freePort } from "../support/free-port.ts";
import { http } from "./support/http.ts";
import { importImage, testerFiles } from "./support/images.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireMachine, Site } from "./support/site.ts";
import { said, statusOf } from "./support/told.ts";
import { until } from "./support/until.ts";

requireMachine();

describe("inside a pod", () => {
  const site = new Site();
  let agent: Agent;

  /** What the script of a pod's only container said; the pod is gone afterwards. */
  const inside = async (name: string, script: string, more: Partial<PodSpec> = {}): Promise<string[]> => {
    const main = { ...shell("main", forever(`{ ${script}\n} 2>&1; echo end`)), ...more.containers?.[0] };
    site.write(manifest(name, { ...more, containers: [main] }));
    const words = await said(site, name, /^end$/m);
    site.remove(name);
    await site.gone(name);
    return words.trimEnd().split("\n").slice(0, -1);
  };
  /** A container as `inside` takes it, with its script. */
  const withFields = (script: string, fields: object): Pick<PodSpec, "containers"> => ({
    containers: [{ ...shell("main", forever(`{ ${script}\n} 2>&1; echo end`)), ...fields }],
  });

  before(async () => {
    agent = await site.up(["--cluster-domain=cluster.test", "--cluster-dns=192.0.2.53", "--pod-max-pids=40"]);
  });
  after(() => site.close());

  it("its name is its own, whole where it asks for that, and in /etc/hosts beside its aliases", async () => {
    const hostAliases = [{ ip: "192.0.2.7", hostnames: ["seven", "siete"] }];
    const spec = { hostname: "web-1", subdomain: "group", hostAliases };
    const [plain, ...hosts] = await inside("named", "hostname; cat /etc/hosts", spec);
    assert.equal(plain, "web-1");
    assert.ok(hosts.some((line) => /^\d+\.\S+\tweb-1\.group\.default\.svc\.cluster\.test\tweb-1$/.test(line)));
    assert.ok(hosts.includes("192.0.2.7\tseven\tsiete"), hosts.join("\n"));
    const whole = await inside("whole-name", "hostname", { ...spec, setHostnameAsFQDN: true });
    assert.deepEqual(whole, ["web-1.group.default.svc.cluster.test"]);
  });

  it("names are looked up as its policy says", async () => {
    const cluster = await inside("dns-cluster", "cat /etc/resolv.conf");
    assert.ok(cluster.includes("nameserver 192.0.2.53"), cluster.join("\n"));
    assert.ok(cluster.some((line) => line.startsWith("search default.svc.cluster.test svc.cluster.test cluster.test")));
    assert.ok(cluster.includes("options ndots:5"));
    const dnsConfig = { nameservers: ["192.0.2.1"], searches: ["x.test"], options: [{ name: "ndots", value: "2" }] };
    const own = await inside("dns-own", "cat /etc/resolv.conf", { dnsPolicy: "None", dnsConfig });
    assert.deepEqual(own.filter((line) => line !== "").sort(), [
      "nameserver 192.0.2.1",
      "options ndots:2",
      "search x.test",
    ]);
  });

  it("a host port leads to it, and is free again when it is gone", async () => {
    const hostPort = await freePort();
    const serve = shell("main", "mkdir /w; echo hello > /w/index.html; exec httpd -f -p 8080 -h /w", {
      ports: [{ containerPort: 8080, hostPort }],
    });
    site.write(manifest("ported", { containers: [serve] }));
    await site.running("ported");
    const { status } = await until("it answers", () =>
      http(`http://${hostAddress()}:${hostPort}/`).catch(() => undefined),
    );
    assert.equal(status, 200);
    const clash = shell("main", FOREVER, { ports: [{ containerPort: 80, hostPort }] });
    site.write(manifest("clashing", { containers: [clash] }));
    await site.pod("clashing", "is refused", ({ phase }) => phase === "Failed");
    assert.equal((await statusOf(agent, "clashing"))?.reason, "NodePorts");
    for (const name of ["ported", "clashing"]) site.remove(name);
    await site.gone("ported");
    await until("nobody answers", () =>
      http(`http://${hostAddress()}:${hostPort}/`).then(
        () => false,
        () => true,
      ),
    );
  });

  it("processes are each container's own, the pod's or the host's", async () => {
    const volumeMounts = [{ name: "both", mountPath: "/both" }];
    const look = "until [ -e /both/up ]; do sleep 0.1; done; ps -o pid,args | grep -c '[s]leep 4321'";
    const other = shell("other", forever("sleep 4321 & touch /both/up"), { volumeMounts });
    const spec = {
      containers: [other, shell("main", forever(`${look}; echo end`), { volumeMounts })],
      volumes: [{ name: "both", emptyDir: {} }],
    };
    site.write(manifest("apart", spec));
    site.write(manifest("together", { ...spec, shareProcessNamespace: true }));
    assert.match(await said(site, "apart/main", /end/), /^0\n/);
    assert.match(await said(site, "together/main", /end/), /^[1-9]\n/);
    for (const name of ["apart", "together"]) site.remove(name);
    const namespaces = "readlink /proc/self/ns/pid; readlink /proc/self/ns/ipc";
    const own = await inside("host-namespaces", namespaces, { hostPID: true, hostIPC: true });
    assert.deepEqual(own, [readlinkSync("/proc/self/ns/pid"), readlinkSync("/proc/self/ns/ipc")]);
    const apart = await inside("own-namespaces", namespaces);
    assert.ok(own.every((link, index) => link !== apart[index]));
  });

  it("a safe sysctl is set", async () => {
    const sysctls = [{ name: "net.ipv4.ip_unprivileged_port_start", value: "81" }];
    const script = "cat /proc/sys/net/ipv4/ip_unprivileged_port_start";
    assert.deepEqual(await inside("sysctl", script, { securityContext: { sysctls } }), ["81"]);
  });

  it("users, groups and rights are those of its security context", async () => {
    const script = [
      "id -u; id -g; id -G | tr ' ' '\\n' | sort -un | xargs",
      "grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status | tr '\\t' ' '",
      "touch /x || echo shut",
      "touch /data/x && stat -c %g /data/x",
    ].join("\n");
    const securityContext = {
      runAsUser: 1001,
      runAsGroup: 1002,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] },
    };
    const fields = { securityContext, volumeMounts: [{ name: "data", mountPath: "/data" }] };
    const lines = await inside("limited", script, {
      ...withFields(script, fields),
      volumes: [{ name: "data", emptyDir: {} }],
      securityContext: { fsGroup: 2001, supplementalGroups: [2002] },
    });
    assert.deepEqual(lines, [
      ...["1001", "1002", "1002 2001 2002", "CapEff: 0000000000000000", "CapBnd: 0000000000000400", "NoNewPrivs: 1"],
      ...["touch: /x: Read-only file system", "shut", "2001"],
    ]);
  });

  it("who must not be root does not start as root, and says so", async () => {
    site.write(manifest("no-root", { securityContext: { runAsNonRoot: true } }));
    await site.pod("no-root", "waits", ({ state }) => state === "CreateContainerConfigError");
    const waiting = (await statusOf(agent, "no-root"))?.containerStatuses?.[0]?.state?.waiting;
    assert.match(waiting?.message ?? "", /^container has runAsNonRoot and image will run as root/);
    site.remove("no-root");
    const lines = await inside("no-root-2", "id -u", { securityContext: { runAsNonRoot: true, runAsUser: 7 } });
    assert.deepEqual(lines, ["7"]);
  });

  it("an image's user that has only a name may be root, so who must not be root says a number", async () => {
    const image = "kubelet.local/named:1";
    await importImage(site, { name: image, files: testerFiles(), env: ["PATH=/bin"], user: "tester" });
    const fields = { image };
    assert.deepEqual(await inside("named-user", "id -u", withFields("id -u; id -un", fields)), ["1000", "tester"]);
    const securityContext = { runAsNonRoot: true };
    const containers = [{ ...shell("main", FOREVER), ...fields }];
    site.write(manifest("named-no-root", { containers, securityContext }));
    await site.pod("named-no-root", "waits", ({ state }) => state === "CreateContainerConfigError");
    const waiting = (await statusOf(agent, "named-no-root"))?.containerStatuses?.[0]?.state?.waiting;
    const words =
      /^container has runAsNonRoot and image has non-numeric user \(tester\), cannot verify user is non-root/;
    assert.match(waiting?.message ?? "", words);
    const { uid = "" } = (await site.find("named-no-root")) ?? {};
    assert.deepEqual(await site.containers(uid), []);
    site.remove("named-no-root");
    await site.gone("named-no-root");
    const numbered = { ...withFields("id -u", fields), securityContext: { ...securityContext, runAsUser: 1000 } };
    assert.deepEqual(await inside("named-number", "id -u", numbered), ["1000"]);
  });

  it("a pod with its own users is refused in words where the runtime cannot", async () => {
    site.write(manifest("unshifted", { containers: [shell("main", FOREVER)], hostUsers: false }));
    await site.event("FailedCreatePodSandBox", "unshifted", /runtime does not support user namespaces/);
    assert.equal((await site.find("unshifted"))?.phase, "Pending");
    site.remove("unshifted");
    await site.gone("unshifted");
  });

  it("privileged has every right, and nothing of /proc is hidden from who asks for that", async () => {
    const script = "grep ^CapEff /proc/self/status | cut -f2";
    const look = "grep -c ' /proc/sys ' /proc/self/mountinfo";
    const privileged = await inside("strong", script, withFields(script, { securityContext: { privileged: true } }));
    assert.match(privileged[0] ?? "", /^[0-9a-f]*[1-9a-f][0-9a-f]{9}$/);
    assert.deepEqual(await inside("masked", look), ["1"]);
    const unmasked = { securityContext: { procMount: "Unmasked" } };
    assert.deepEqual(await inside("unmasked", look, withFields(look, unmasked)), ["0"]);
  });

  it("a seccomp profile of this node forbids what it says", async () => {
    const profiles = join(site.state, "kubelet/seccomp");
    mkdirSync(profiles, { recursive: true });
    const rule = { names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO" };
    writeFileSync(
      join(profiles, "no-mkdir.json"),
      JSON.stringify({ defaultAction: "SCMP_ACT_ALLOW", syscalls: [rule] }),
    );
    const seccompProfile = { type: "Localhost", localhostProfile: "no-mkdir.json" };
    const lines = await inside("filtered", "mkdir /tmp/x || echo shut", { securityContext: { seccompProfile } });
    assert.match(lines.join("\n"), /not permitted\nshut$/);
  });

  it("variables come from the pod, its resources, each other, and a file that an init container wrote", async () => {
    const volumeMounts = [{ name: "made", mountPath: "/made" }];
    const env = [
      { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
      { name: "MEMORY", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Mi" } } },
      { name: "MADE", valueFrom: { fileKeyRef: { volumeName: "made", path: "env", key: "WORD" } } },
      { name: "ALL", value: "$(MADE) $(CPU) $$(CPU) $(NONE)" },
    ];
    const resources = { limits: { cpu: "250m", memory: "64Mi" }, requests: { memory: "32Mi" } };
    const script = 'echo "$NAME"; echo "$CPU $MEMORY"; echo "$ALL"; grep -c "^$IP" /etc/hosts';
    const lines = await inside("variables", script, {
      ...withFields(script, { env, resources }),
      initContainers: [shell("first", "echo \"WORD='it works'\" > /made/env", { volumeMounts })],
      volumes: [{ name: "made", emptyDir: {} }],
    });
    assert.deepEqual(lines, ["variables-here", "250 32", "it works 250 $(CPU) $(NONE)", "1"]);
  });

  it("a working directory, standard input and a terminal are as asked for", async () => {
    const script = "pwd; tty; test -t 0 && echo terminal";
    const main = shell("main", forever(`${script}; echo end`), { workingDir: "/tmp", stdin: true, tty: true });
    site.write(manifest("typed", { containers: [main] }));
    const words = (await said(site, "typed", /^end\r?$/m)).replaceAll("\r", "");
    assert.match(words, /^\/tmp\n\/dev\/(pts\/\d+|console)\nterminal\n/);
    site.remove("typed");
  });

  it("one that uses more memory than its limit is OOMKilled, and it is said", async () => {
    const flags = mkdtempSync(join(site.dir, "f-"));
    const wait = (flag: string): string => `until [ -e /flags/${flag} ]; do sleep 0.1; done`;
    // The runtime listens for this from the end of the start on, and may hear of the end before the reason.
    const script = `${wait("begin")}; tail -c 256m /dev/zero; code=$?; ${wait("end")}; exit $code`;
    const volumeMounts = [{ name: "flags", mountPath: "/flags" }];
    const main = shell("main", script, { resources: { limits: { memory: "32Mi" } }, volumeMounts });
    const volumes = [{ name: "flags", hostPath: { path: flags } }];
    site.write(manifest("hungry", { containers: [main], volumes, restartPolicy: "Never" }));
    const pod = await site.running("hungry");
    const id = (ids(pod)["main"] ?? "").replace(/^.*:\/\//, "");
    const { signal } = new AbortController();
    const isNoticed = async (): Promise<boolean> =>
      (await site.cri.containerStatus(id, { signal })).reason === "OOMKilled" ||
      (await site.events()).some((event) => event.reason === "OOMKilling" && event.pod.uid === pod.uid);
    writeFileSync(join(flags, "begin"), "");
    await until("the runtime or the agent has noticed", isNoticed);
    writeFileSync(join(flags, "end"), "");
    await site.pod("hungry", "has failed", ({ phase }) => phase === "Failed");
    const ended = (await statusOf(agent, "hungry"))?.containerStatuses?.[0]?.state?.terminated;
    assert.deepEqual([ended?.reason, ended?.exitCode], ["OOMKilled", 137]);
    site.remove("hungry");
  });

  it("a pod cannot have more processes than the node gives each", async () => {
    const script = "i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done 2>&1 | head -1; echo tried";
    const lines = await inside("many", `(${script})`);
    assert.match(lines.join("\n"), /can't fork|Resource temporarily unavailable/);
  });

  it("huge pages that the node does not have are refused", async () => {
    const limits = { "hugepages-2Mi": "64Mi", memory: "64Mi", cpu: "100m" };
    const file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    if (existsSync(file) && Number(readFileSync(file, "utf8")) >= 32) return;
    site.write(manifest("huge", { containers: [shell("main", FOREVER, { resources: { limits } })] }));
    await site.pod("huge", "is refused", ({ phase }) => phase === "Failed");
    const { reason, message } = (await statusOf(agent, "huge")) ?? {};
    assert.equal(reason, "UnexpectedAdmissionError");
    assert.match(message ?? "", /\(res: hugepages-2Mi, q: \d+\)/);
    site.remove("huge");
  });
});

/** An address of this machine that is no loopback: host ports lead from outside. */
function hostAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outside = all.find(({ family, internal }) => family === "IPv4" && !internal);
  return outside?.address ?? "127.0.0.1";
}
