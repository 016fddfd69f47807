/** The gate of the list itself. */
const LIST_GATE = "NodeDeclaredFeatures";

/**
 * The features that this agent supports of those that a node can declare, by the name of their gate: the scheduler and
 * the API server rely on them. `ExtendWebSocketsToKubelet` is missing: WebSocket is supported up to v4, so the API server
 * has to go on translating.
 */
const SUPPORTED = [
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScalingInitContainers",
  "RestartAllContainersOnContainerExits",
];

/** Returns `status.declaredFeatures`, sorted. Pure. */
export function declaredFeatures(isGateOn: (gate: string) => boolean): readonly string[] {
  return isGateOn(LIST_GATE) ? SUPPORTED.filter(isGateOn).sort() : [];
}
