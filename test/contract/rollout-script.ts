import type { Command } from "./kubectl-script.ts";

/** A command about workloads. */
export interface RolloutCommand extends Command {
  /** It waits: only that it ends well is compared, not what it prints meanwhile. */
  readonly waits?: boolean;
}

/** Commands after which the objects of the namespace are the same on both servers. */
export interface Stage {
  readonly name: string;
  readonly commands: readonly RolloutCommand[];
}

const on = (line: string): RolloutCommand => ({ line: `${line} -n work` });
const wait = (line: string): RolloutCommand => ({ line: `${line} -n work --timeout=60s`, waits: true });
const stage = (name: string, ...commands: readonly RolloutCommand[]): Stage => ({ name, commands });

const deployments: readonly Stage[] = [
  stage(
    "a Deployment comes up",
    on("apply -f deployment.yaml"),
    wait("rollout status deployment/api"),
    on("rollout status deployment/api --watch=false"),
    on("rollout history deployment/api"),
    on("get deployment,replicaset,service"),
    on("get pods --no-headers -l app=api"),
  ),
  stage(
    "set image",
    on("set image deployment/api api=example.com/run:2"),
    on("annotate deployment/api kubernetes.io/change-cause=two"),
    wait("rollout status deployment/api"),
    on("rollout history deployment/api"),
    on("rollout history deployment/api --revision=2"),
    on("rollout history deployment/api --revision=7"),
  ),
  stage(
    "set env and resources while paused",
    on("rollout pause deployment/api"),
    on("rollout pause deployment/api"),
    on("set env deployment/api A=1 B-"),
    on("set env deployment/api --list"),
    on("set resources deployment/api --limits=cpu=200m,memory=64Mi --requests=cpu=10m"),
    on("rollout status deployment/api --watch=false"),
    on("rollout undo deployment/api"),
    on("rollout restart deployment/api"),
  ),
  stage(
    "resume",
    on("rollout resume deployment/api"),
    on("rollout resume deployment/api"),
    wait("rollout status deployment/api"),
    on("rollout history deployment/api"),
  ),
  stage(
    "undo",
    on("rollout undo deployment/api"),
    wait("rollout status deployment/api"),
    on("rollout history deployment/api"),
    on("rollout undo deployment/api --to-revision=1 --dry-run=server"),
    on("rollout undo deployment/api --to-revision=1"),
    wait("rollout status deployment/api"),
    on("rollout undo deployment/api --to-revision=9"),
    on("rollout history deployment/api"),
  ),
  stage("restart", on("rollout restart deployment/api"), wait("rollout status deployment/api")),
  stage(
    "scale",
    on("scale deployment/api --replicas=4"),
    wait("rollout status deployment/api"),
    on("scale deployment/api --replicas=1 --current-replicas=9"),
    on("scale deployment/api --replicas=1"),
    wait("rollout status deployment/api"),
    wait("wait --for=jsonpath={.status.replicas}=1 deployment/api"),
    on("get deployment api -o wide"),
    on("scale deployment/none --replicas=1"),
    on("scale pod/none --replicas=1"),
    on("autoscale deployment/api --min=1 --max=3"),
    on("get hpa"),
  ),
  stage(
    "a rollout that does not come up, and its undo",
    on('patch deployment api -p \'{"spec":{"progressDeadlineSeconds":3}}\''),
    on("set image deployment/api api=example.com/waits:1"),
    wait("wait --for=jsonpath={.status.unavailableReplicas}=1 deployment/api"),
    wait("wait --for=condition=Progressing=false deployment/api"),
    on("rollout status deployment/api --watch=false"),
    on("get deployment"),
    on('patch deployment api -p \'{"spec":{"progressDeadlineSeconds":600}}\''),
    on("rollout undo deployment/api"),
    wait("rollout status deployment/api"),
  ),
  stage(
    "Recreate",
    on('patch deployment api -p \'{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}\''),
    on("set image deployment/api api=example.com/run:3"),
    wait("rollout status deployment/api"),
  ),
];

const sets: readonly Stage[] = [
  stage(
    "a StatefulSet comes up",
    on("apply -f stateful.yaml"),
    wait("rollout status statefulset/data"),
    on("rollout status statefulset/data --watch=false"),
    on("get statefulset data -o wide"),
    on("get pods -l app=data"),
  ),
  stage(
    "a StatefulSet is upgraded",
    on("set image statefulset/data data=example.com/run:2"),
    wait("rollout status statefulset/data"),
    on("rollout history statefulset/data"),
    on("rollout history statefulset/data --revision=1"),
  ),
  stage(
    "a StatefulSet is rolled back and scaled",
    on("rollout undo statefulset/data"),
    wait("rollout status statefulset/data"),
    on("rollout history statefulset/data"),
    on("scale statefulset/data --replicas=1"),
    wait("wait --for=jsonpath={.status.replicas}=1 statefulset/data"),
    on("rollout pause statefulset/data"),
  ),
  stage(
    "a DaemonSet comes up and is upgraded",
    on("apply -f daemon.yaml"),
    wait("rollout status daemonset/agent"),
    on("get daemonset agent -o wide"),
    on("set env daemonset/agent LEVEL=2"),
    wait("rollout status daemonset/agent"),
    on("rollout history daemonset/agent"),
    on("rollout status daemonset/agent --watch=false"),
    on("scale daemonset/agent --replicas=2"),
  ),
  stage("a DaemonSet is rolled back", on("rollout undo daemonset/agent"), wait("rollout status daemonset/agent")),
  stage(
    "a DaemonSet is restarted",
    on("rollout restart daemonset/agent"),
    wait("rollout status daemonset/agent"),
    on("rollout history daemonset/agent"),
  ),
  stage(
    "a ReplicaSet of its own",
    on("apply -f replicaset.yaml"),
    wait("wait --for=jsonpath={.status.readyReplicas}=2 replicaset/plain"),
    on("get replicaset plain -o wide"),
    on("rollout status replicaset/plain"),
    on("scale replicaset/plain --replicas=1"),
    wait("wait --for=jsonpath={.status.replicas}=1 replicaset/plain"),
  ),
];

const jobs: readonly Stage[] = [
  stage(
    "a Job succeeds",
    on("create job good --image=example.com/once:1"),
    wait("wait --for=condition=Complete job/good"),
    on("get job good"),
  ),
  stage(
    "a Job fails",
    on("apply -f bad-job.yaml"),
    wait("wait --for=condition=Failed job/bad"),
    on("get job bad -o wide"),
  ),
  stage(
    "an indexed Job",
    on("apply -f indexed.yaml"),
    wait("wait --for=condition=Complete job/indexed"),
    on("get job indexed"),
  ),
  stage(
    "a Job is suspended and resumed",
    on("apply -f suspended.yaml"),
    wait("wait --for=condition=Suspended job/suspended"),
    on("get job suspended"),
    on('patch job suspended -p \'{"spec":{"suspend":false}}\''),
    wait("wait --for=jsonpath={.status.ready}=1 job/suspended"),
  ),
  stage(
    "a CronJob and a Job of it",
    on("apply -f cron.yaml"),
    on("create job by-hand --from=cronjob/nightly"),
    wait("wait --for=condition=Complete job/by-hand"),
    on("get cronjob nightly"),
  ),
];

const deletions: readonly Stage[] = [
  stage(
    "orphans stay",
    on("delete deployment api --cascade=orphan"),
    on("get replicaset -l app=api -o jsonpath={.items[*].metadata.ownerReferences}"),
  ),
  stage(
    "background",
    on("delete statefulset,daemonset --all"),
    wait("wait --for=delete pod -l 'app in (data, agent)'"),
  ),
  stage("foreground", wait("delete replicaset --all --cascade=foreground"), on("get pods -l app=api")),
  stage("jobs", on("delete job good bad indexed suspended"), on("delete cronjob nightly")),
  stage("the namespace", { line: "delete namespace work --timeout=60s" }, { line: "get namespace work" }),
];

/** In this order: each stage meets what those before it left. */
export const STAGES: readonly Stage[] = [...deployments, ...sets, ...jobs, ...deletions];

const workload = (kind: string, name: string, more: string): string => `apiVersion: apps/v1
kind: ${kind}
metadata: {name: ${name}}
spec:
  selector: {matchLabels: {app: ${name}}}
${more}  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: ${name}, image: "example.com/run:1"}]
`;

const job = (name: string, image: string, more = ""): string => `apiVersion: batch/v1
kind: Job
metadata: {name: ${name}}
spec:
${more}  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: job, image: "example.com/${image}"}]
`;

/** Manifests that the stages name by file. */
export const ROLLOUT_FILES: Readonly<Record<string, string>> = {
  "deployment.yaml": `${workload("Deployment", "api", "  replicas: 2\n")}---
apiVersion: v1
kind: Service
metadata: {name: api}
spec:
  clusterIP: None
  selector: {app: api}
  ports: [{name: http, port: 80, targetPort: 8080}]
`,
  "stateful.yaml": workload("StatefulSet", "data", "  serviceName: data\n  replicas: 2\n"),
  "daemon.yaml": workload("DaemonSet", "agent", ""),
  "replicaset.yaml": workload("ReplicaSet", "plain", "  replicas: 2\n"),
  "bad-job.yaml": job("bad", "fails:1", "  backoffLimit: 0\n"),
  "indexed.yaml": job("indexed", "once:1", "  completionMode: Indexed\n  completions: 3\n  parallelism: 2\n"),
  "suspended.yaml": job("suspended", "run:1", "  suspend: true\n"),
  "cron.yaml": `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: job, image: "example.com/once:1"}]
`,
};
