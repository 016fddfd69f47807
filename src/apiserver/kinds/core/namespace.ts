import { CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS } from "../../../adapters/kubeapi/index.ts";
import type { Namespace } from "../../../model/generated/types.ts";
import { forbiddenRequest } from "../../status/status-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind, type Kind } from "../kind.ts";

const FINALIZER = "kubernetes";
const NAME_LABEL = "kubernetes.io/metadata.name";
/** Namespaces that the agent needs. */
const PERMANENT = ["default", "kube-system", "kube-public"];

/** `authority` is the certificate that pods trust the API by, PEM; empty without one. */
export function namespaceKind(authority: string): Kind {
  return defineKind<Namespace>({
    resource: NAMESPACES,
    shortNames: ["ns"],
    nameRule: "label",
    returnsDeleted: true,
    defaults: (namespace) => {
      const { metadata } = namespace;
      const name = metadata.name ?? "";
      if (name === "") return namespace;
      return { ...namespace, metadata: { ...metadata, labels: { ...metadata.labels, [NAME_LABEL]: name } } };
    },
    prepareCreate: (namespace) => {
      const finalizers = namespace.spec?.finalizers ?? [];
      const all = finalizers.includes(FINALIZER) ? finalizers : [...finalizers, FINALIZER];
      return { ...namespace, spec: { ...namespace.spec, finalizers: all }, status: { phase: "Active" } };
    },
    prepareUpdate: (next, old) => ({ ...next, spec: old.spec ?? {} }),
    admitDelete: ({ metadata }) => {
      const name = metadata.name ?? "";
      if (PERMANENT.includes(name)) throw forbiddenRequest(NAMESPACES, name, "this namespace may not be deleted");
    },
    prepareDelete: (namespace) => ({ ...namespace, status: { ...namespace.status, phase: "Terminating" } }),
    isHeld: ({ spec }) => (spec?.finalizers ?? []).length > 0,
    // In the same write, so that no pod of a new namespace ever waits for them.
    afterCreate: ({ metadata }, writes) => {
      const namespace = metadata.name ?? "";
      writes.ensure(SERVICE_ACCOUNTS, { metadata: { name: "default", namespace } });
      if (authority === "") return;
      const data = { "ca.crt": authority };
      writes.ensure(CONFIG_MAPS, { metadata: { name: "kube-root-ca.crt", namespace }, data });
    },
    selectableFields: ({ metadata, status }) => ({ "status.phase": status?.phase ?? "", name: metadata.name ?? "" }),
    status: {},
    updates: {
      finalize: { prepare: (next, old) => ({ ...old, metadata: next.metadata, spec: next.spec ?? {} }) },
    },
    table: tableOf<Namespace>([NAME, { name: "Status", cell: ({ status }) => status?.phase ?? "" }, AGE]),
  });
}
