/** One command of kubectl, which must print the same on both servers. */
export interface Command {
  /** Words; quoted ones may have spaces. */
  readonly line: string;
  readonly input?: string;
  /** What must end up in the object that `edit` opens: a script of sed. */
  readonly edits?: string;
  /** Lines in which both may differ, with the reason. */
  readonly differs?: string;
}

const on = (line: string, more: Omit<Command, "line"> = {}): Command => ({ line, ...more });

/** Reasons, which docs/local-api.md lists. */
const PROSE = "schemas have no prose";
const GO = "the words of Go's decoders and structs";
const NO_CONTROLLERS = "no controllers run beside this server";

/** The answers to what is not served, and to what is. */
const discovery: readonly Command[] = [
  on("auth can-i create pods"),
  on("auth can-i delete nodes --all-namespaces"),
  on("auth can-i delete pods --as=jane", { differs: "the reason names that there is no RBAC" }),
  on("get secrets -n default --as=jane --as-group=dev"),
  on("explain pod.spec.restartPolicy --output=plaintext-openapiv2", { differs: "OpenAPI v2 has no schemas" }),
  on("explain configmap.data", { differs: PROSE }),
  on("explain pod.spec.containers.resources.limits", { differs: PROSE }),
  on("explain nothing"),
  on("explain pod.spec.nothing"),
  on("get gadgets"),
  on("get gadgets.example.com"),
  on("api-resources --api-group=apps --no-headers"),
  on("api-resources --api-group=batch -o wide"),
  on("api-resources --api-group=example.com"),
];

const maps: readonly Command[] = [
  on("create namespace shop --dry-run=client -o yaml"),
  on("create namespace shop"),
  on("create namespace shop"),
  on("get namespace shop"),
  on("apply -n shop -f settings.yaml --dry-run=server"),
  on("get configmap settings -n shop"),
  on("diff -n shop -f settings.yaml"),
  on("apply -n shop -f settings.yaml"),
  on("apply -n shop -f settings.yaml"),
  on("diff -n shop -f settings-blue.yaml"),
  on("apply -n shop -f settings-blue.yaml"),
  on("get configmap settings -n shop -o yaml"),
  on("get configmap settings -n shop -o json"),
  on("get cm -n shop settings -o name"),
  on("get cm -n shop settings -o jsonpath={.data}"),
  on("get cm -n shop -o custom-columns=NAME:.metadata.name,COLOR:.data.color"),
  on("get cm -n shop settings -o go-template={{.metadata.name}}"),
  on("get cm -n shop settings --show-labels"),
  on("get cm -n shop -L app"),
  on("describe configmap settings -n shop"),
  on("create configmap literal -n shop --from-literal=a=b --from-literal=c=d"),
  on("create -n shop -f settings.yaml"),
  on("replace -n shop -f settings.yaml"),
  on("create configmap input -n shop --from-file=words=/dev/stdin", { input: "many words\n" }),
  on("edit configmap settings -n shop", { edits: "s/color: red/color: green/" }),
  on("edit configmap settings -n shop", { edits: "s/x/x/" }),
  on("edit configmap settings -n shop --output-patch", { edits: "s/color: green/color: white/" }),
  on("label configmap settings -n shop tier=back"),
  on("label configmap settings -n shop tier=front"),
  on("label configmap settings -n shop tier=front --overwrite"),
  on("label configmap settings -n shop tier-"),
  on("label configmap settings -n shop 'bad label=x'"),
  on("annotate configmap settings -n shop note='two words'"),
  on("annotate configmap --all -n shop all=yes"),
  on('patch configmap settings -n shop -p \'{"data":{"a":"b","size":null}}\''),
  on('patch configmap settings -n shop --type=merge -p \'{"data":{"a":"c"}}\''),
  on('patch configmap settings -n shop --type=merge -p \'{"data":{"a":"c"}}\''),
  on(
    'patch configmap settings -n shop --type=json -p \'[{"op":"test","path":"/data/a","value":"c"},{"op":"remove","path":"/data/a"}]\'',
  ),
  on('patch configmap settings -n shop --type=json -p \'[{"op":"remove","path":"/data/none"}]\''),
  on('patch configmap settings -n shop -p \'{"metadata":{"finalizers":["example.com/b"]}}\''),
  on('patch configmap settings -n shop -p \'{"metadata":{"finalizers":["example.com/a"]}}\''),
  on("get configmap settings -n shop -o jsonpath={.metadata.finalizers}"),
  on('patch configmap settings -n shop --type=merge -p \'{"metadata":{"finalizers":null}}\''),
  on("patch configmap settings -n shop -p '{\"data\":5}'", { differs: GO }),
  on("patch configmap none -n shop -p '{}'"),
  on("get configmap settings -n shop -o jsonpath={.data}{.metadata.labels}{.metadata.annotations.note}"),
];

const owners: readonly Command[] = [
  on("apply --server-side -n shop -f owned.yaml"),
  on("apply --server-side -n shop -f owned.yaml"),
  on("apply --server-side --field-manager=other -n shop -f owned-two.yaml"),
  on("apply --server-side --field-manager=other --force-conflicts -n shop -f owned-two.yaml"),
  on("get configmap owned -n shop -o yaml --show-managed-fields"),
  on("apply --server-side -n shop -f owned-two.yaml"),
  on("get configmap owned -n shop -o jsonpath={.data}"),
  on("apply view-last-applied configmap settings -n shop"),
  on("apply -n shop -f owned.yaml"),
];

const pods: readonly Command[] = [
  on("apply -n shop -f web.yaml --dry-run=server -o yaml"),
  on("apply -n shop -f web.yaml"),
  on("apply -n shop -f web.yaml"),
  on("get pods -n shop"),
  on("get pods -n shop -o wide"),
  on("get pods -n shop -l app=web,tier!=back -o name"),
  on("get pods -n shop -l 'app in (web, api)' -o name"),
  on("get pods -n shop -l '!tier' -o name"),
  on("get pods -n shop -l 'app in ('"),
  on("get pods -n shop --field-selector=status.phase=Pending -o name"),
  on("get pods -n shop --field-selector=metadata.name!=web"),
  on("get pods -n shop --field-selector=spec.none=x"),
  on("get pods -A --field-selector=metadata.namespace=shop --sort-by=.metadata.name"),
  on("get pod web -n shop -o yaml"),
  on("describe pod web -n shop"),
  // Time enough to list the pod: without that kubectl complains in other words.
  on("wait -n shop --for=condition=Ready pod/web --timeout=3s"),
  on("wait -n shop --for=jsonpath={.status.phase}=Pending pod/web --timeout=5s"),
  on("wait -n shop --for=create configmap/settings --timeout=5s"),
  on('patch pod web -n shop -p \'{"spec":{"hostNetwork":true}}\'', { differs: GO }),
  on('patch pod web -n shop -p \'{"spec":{"containers":[{"name":"web","image":"example.com/web:2"}]}}\''),
  on("set image -n shop pod/web web=example.com/web:3"),
  on("get pod web -n shop -o jsonpath={.spec.containers[*].image}"),
  on("run one -n shop --image=example.com/one:1 --restart=Never --dry-run=client -o yaml"),
  on('run one -n shop --image=example.com/one:1 --overrides=\'{"spec":{"nodeSelector":{"none":"such"}}}\''),
  on("get pod none -n shop"),
  on("get pod web one none -n shop"),
  on("delete pod one -n shop --dry-run=server"),
  on("delete pod one -n shop"),
  on("delete pod one -n shop"),
  on("delete pod one -n shop --ignore-not-found"),
  on("delete -n shop -f web.yaml --grace-period=0 --force"),
];

const others: readonly Command[] = [
  on("apply -n shop -f two.yaml"),
  on("get secret two -n shop"),
  on("describe secret two -n shop"),
  on("create secret generic typed -n shop --type=kubernetes.io/basic-auth --from-literal=x=y"),
  on("create secret docker-registry pull -n shop --docker-server=r --docker-username=u --docker-password=p"),
  on("get secrets -n shop --field-selector=type=Opaque -o name"),
  on("get serviceaccount two -n shop"),
  on("describe serviceaccount two -n shop"),
  on("apply -n shop -f claim.yaml"),
  on("get pvc -n shop"),
  on("apply -n shop -f service.yaml"),
  on("get service web -n shop -o wide"),
  on("describe service web -n shop", { differs: NO_CONTROLLERS }),
  on("apply -n shop -f deployment.yaml"),
  on("scale deployment api -n shop --replicas=0 --current-replicas=5"),
  on("set image deployment/api -n shop api=example.com/api:2"),
  on("set env deployment/api -n shop A=1"),
  on("set resources deployment api -n shop --limits=cpu=200m"),
  on("get deployment api -n shop -o jsonpath={.spec.template.spec.containers}"),
  on("apply -n shop -f cron.yaml"),
  on("get cronjob -n shop"),
  on("describe cronjob nightly -n shop"),
  on("create job from-cron -n shop --from=cronjob/nightly --dry-run=client -o name"),
  on("create token two -n shop --duration=1s"),
  on("get priorityclasses"),
  on("get events -n shop --field-selector=involvedObject.name=none"),
  on("events -n shop --for=configmap/settings"),
  on("kustomize ."),
  on("apply -k ."),
  on("delete -k ."),
];

const wrong: readonly Command[] = [
  on("create -n shop -f bad-many.yaml"),
  on("create -n shop -f bad-many.yaml --validate=false"),
  on("create -n shop -f bad-field.yaml"),
  on("apply -n shop -f bad-field.yaml --validate=warn --dry-run=server"),
  on("create -n shop -f bad-type.yaml"),
  on("create -n shop -f bad-kind.yaml"),
  on("create -n shop -f bad-yaml.yaml"),
  on("create -n nowhere configmap x"),
  on("create -n shop configmap Bad_Name"),
  on("create namespace kube-system"),
  on("create namespace Bad"),
  on("apply -n shop -f fixed.yaml"),
  on("apply -n shop -f bad-immutable.yaml"),
  on("create deployment wrong -n shop --image=x --replicas=-1"),
  on("get --raw /api/v1/namespaces/shop/configmaps/none"),
  on("get --raw /api/v1/namespaces/shop/gadgets"),
  on("apply -n shop -f list.yaml"),
  on("delete -n shop -f list.yaml"),
  on("get --raw /nothing"),
  on("get --raw /healthz"),
  on("get --raw '/api/v1/namespaces/shop/configmaps?limit=1&continue=broken'", { differs: GO }),
  on("get --raw '/api/v1/namespaces/shop/configmaps?labelSelector=a+b+c'"),
  on("get --raw '/api/v1/namespaces/shop/configmaps?resourceVersion=x'"),
  on("delete configmap -n shop -l all=yes"),
  on("delete configmap owned fixed -n shop"),
  on("get configmap -n shop -o name"),
  on("delete deployments,services,cronjobs,statefulsets --all -n shop"),
];

/** In this order: each command meets what those before it left. */
export const SCRIPT: readonly Command[] = [...discovery, ...maps, ...owners, ...pods, ...others, ...wrong];
