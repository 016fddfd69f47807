import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Container } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import type { ContainerProbes } from "../../model/probe.ts";
import { planPod } from "./plan.ts";

const probe = { exec: { command: ["x"] } };
const sidecar: Partial<Container> = { restartPolicy: "Always", livenessProbe: probe, startupProbe: probe };
const proxy = { name: "proxy", image: "proxy:1" };
const app = { name: "app", image: "app:1" };
const now = { wall: 100_000, mono: 50_000 };
const NONE = { started: undefined, ready: undefined, liveness: undefined, startup: undefined };
const MEMORY = { crashes: new Map(), holds: new Map(), replacing: new Set<string>() };

const cases: { name: string; running: Partial<ObservedContainer>; probes?: Partial<ContainerProbes>; want: string }[] =
  [
    { name: "changed", running: { hash: "other" }, want: "Init container proxy definition changed" },
    {
      name: "failed liveness",
      running: {},
      probes: { liveness: "failure" },
      want: "Init container proxy failed liveness probe",
    },
    {
      name: "failed startup",
      running: {},
      probes: { startup: "failure" },
      want: "Init container proxy failed startup probe",
    },
    {
      name: "in unknown state",
      running: { state: "unknown" },
      want: 'Init container is in "unknown" state, try killing it before restart',
    },
  ];

describe("the message of the event Killing for a sidecar is the one of Kubernetes", () => {
  for (const c of cases) {
    test(c.name, () => {
      const of = pod().init("proxy", sidecar).container("app").build();
      const facts = {
        observed: observed(of, [sandbox()], [seen(app), seen(proxy, c.running)]),
        memory: MEMORY,
        probes: new Map([["proxy", { ...NONE, containerId: "proxy-0", ...c.probes }]]),
      };
      const plan = planPod(of, facts, now);
      const kills = plan.kind === "finish" ? [] : plan.actions.filter((action) => action.do === "killContainer");
      assert.deepEqual(
        kills.map(({ why }) => why),
        [c.want],
      );
    });
  }
});

test("a resize that needs a restart says only that", () => {
  const resizePolicy = [{ resourceName: "cpu", restartPolicy: "RestartContainer" }];
  const of = pod()
    .container("app", { resizePolicy, resources: { limits: { cpu: "2" } } })
    .build();
  const facts = {
    observed: observed(of, [sandbox()], [seen(app)]),
    memory: MEMORY,
    actualOf: () => ({ limits: { cpu: "1" } }),
  };
  const plan = planPod(of, facts, now);
  const [kill] = plan.kind === "finish" ? [] : plan.actions;
  assert.equal(kill?.do === "killContainer" && kill.why, "Container app resize requires restart");
});
