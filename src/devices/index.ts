export { type ComposeDevicesDeps, composeDevices, type Devices } from "./compose.ts";
export type { DeviceCount } from "./inventory.ts";
