import { SystemClock } from "../../src/lib/clock.ts";
import { kubeApiContract } from "../contract/kubeapi-suite.ts";
import { skipWithoutControlPlane, TestControlPlane } from "../support/control-plane.ts";

skipWithoutControlPlane();

kubeApiContract("kube-apiserver", async () => {
  const plane = await TestControlPlane.start();
  await plane.createNamespace("suite");
  return { api: plane.clients().calls, clock: new SystemClock(), namespace: "suite", stop: () => plane.stop() };
});
