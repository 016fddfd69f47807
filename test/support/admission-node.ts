import type { AdmissionNode } from "../../src/pods/admission/admission.ts";

/** A node of 4 CPUs without labels, taints or special abilities, as admission sees it. */
export const ADMISSION_NODE: AdmissionNode = {
  name: "here",
  labels: {},
  taints: [],
  kernel: "6.1.0",
  hasAppArmor: false,
  hasStrictGroups: false,
  allowedUnsafeSysctls: [],
  allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
};
