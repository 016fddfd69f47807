/** The gate behind the list itself. */
const LIST_GATE = "NodeDeclaredFeatures";

/**
 * What this agent does of that which Kubernetes lets a node declare, each by the name of its gate. A name is a promise:
 * scheduler and API server send what needs it. Not here, since it is not done: `ExtendWebSocketsToKubelet` (WebSocket is
 * spoken up to v4, so the API server has to go on translating).
 */
const PROMISES = [
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScalingInitContainers",
  "RestartAllContainersOnContainerExits",
];

/** 2.1: `status.declaredFeatures`, sorted. Pure. */
export function declaredFeatures(isGateOn: (gate: string) => boolean): readonly string[] {
  return isGateOn(LIST_GATE) ? PROMISES.filter(isGateOn).sort() : [];
}
