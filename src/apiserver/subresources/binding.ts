import { PODS } from "../../adapters/kubeapi/index.ts";
import type { Binding, Pod, PodCondition } from "../../model/generated/types.ts";
import { kindForm, type OperationDeps, storedForm, type Target, timeText } from "../operations/context.ts";
import { readParsedBody } from "../rest/read-body.ts";
import type { Subresource } from "../rest/subresource.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { required } from "../status/field-error.ts";
import { conflict, invalidObject, methodNotAllowed, notFound } from "../status/status-error.ts";

const BINDING = { group: "", version: "v1", kind: "Binding" };

/** `pods/binding`: gives a pod to a node. */
export function bindingSubresource(deps: OperationDeps): Subresource {
  return {
    collection: PODS.plural,
    name: "binding",
    verbs: ["create"],
    answer: BINDING,
    handle: async (target, { request }) => {
      if (request.method !== "POST") throw methodNotAllowed();
      const { value } = await readParsedBody(request, deps);
      await bindPod(deps, target, decodeTree("Binding", value).object as unknown as Binding); // reason: decoded by its schema
      const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
      return { status: 201, type: "application/json", body: `${JSON.stringify(body)}\n` };
    },
  };
}

/** Gives a pod to a node, once. Rejects with `StatusError` or `LogError`. */
export async function bindPod(
  deps: OperationDeps,
  { namespace, name }: Pick<Target, "namespace" | "name">,
  { target, metadata }: Binding,
): Promise<void> {
  const nodeName = target.name ?? "";
  if (nodeName === "") throw invalidObject(BINDING, name, [required("target.name")]);
  const kind = deps.kinds.of(PODS);
  await deps.store.commit((transaction) => {
    const existing = transaction.get(kind.collection, { namespace, name });
    if (existing === undefined) throw notFound(PODS, name);
    const pod = kindForm(kind, existing.parse()) as Pod; // reason: the kind of the collection
    if (metadata?.uid && metadata.uid !== pod.metadata.uid) {
      const uids = `UID in precondition: ${metadata.uid}, UID in object meta: ${pod.metadata.uid ?? ""}`;
      throw conflict({ group: "", plural: "pods/binding" }, name, `Precondition failed: ${uids}`);
    }
    const refused = refusal(pod, name);
    if (refused !== undefined) throw conflict({ group: "", plural: "pods/binding" }, name, refused);
    const bound = withNode(pod, nodeName, timeText(deps.clock.now().wall));
    transaction.put(kind.collection, { namespace, name }, storedForm(kind, bound));
  });
}

function refusal({ metadata, spec }: Pod, name: string): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (spec.nodeName) return `pod ${name} is already assigned to node "${spec.nodeName}"`;
  return (spec.schedulingGates ?? []).length > 0 ? `pod ${name} has non-empty .spec.schedulingGates` : undefined;
}

function withNode(pod: Pod, nodeName: string, now: string): Pod {
  const scheduled: PodCondition = { type: "PodScheduled", status: "True", lastTransitionTime: now };
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  return {
    ...pod,
    spec: { ...pod.spec, nodeName },
    status: { ...pod.status, conditions: [...others, scheduled] },
  };
}
