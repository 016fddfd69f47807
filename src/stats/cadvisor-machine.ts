import type { MountedFilesystem } from "../model/usage.ts";
import { type Json, timeOf } from "./cadvisor-json.ts";
import type { MachineDescription } from "./machine-description.ts";

/** The machine as cAdvisor shows it: `/spec/` and `machine`. */
export function machineJson(machine: MachineDescription, filesystems: readonly MountedFilesystem[]): Json {
  return {
    timestamp: timeOf(machine.at),
    vendor_id: machine.vendorId,
    num_cores: machine.cores,
    num_physical_cores: machine.physicalCores,
    num_sockets: machine.sockets,
    cpu_frequency_khz: machine.cpuKhz,
    memory_capacity: machine.memoryBytes,
    swap_capacity: machine.swapBytes,
    memory_by_type: {},
    nvm: { memory_mode_capacity: 0, "app direct_mode_capacity": 0, avg_power_budget: 0 },
    hugepages: hugePages(machine.hugePages),
    machine_id: machine.machineId,
    system_uuid: machine.systemUuid,
    boot_id: machine.bootId,
    filesystems: filesystems.map(filesystemInfo),
    disk_map: machine.disks,
    network_devices: machine.networkDevices,
    topology: topologyOf(machine),
    cloud_provider: "Unknown",
    instance_type: "Unknown",
    instance_id: "None",
  };
}

/** Facts of the system in the shape of 2.x. */
export function attributesJson(machine: MachineDescription, filesystems: readonly MountedFilesystem[]): Json {
  return {
    kernel_version: machine.kernel,
    container_os_version: machine.osImage,
    docker_version: "",
    docker_api_version: "",
    cadvisor_version: machine.version,
    num_cores: machine.cores,
    cpu_frequency_khz: machine.cpuKhz,
    memory_capacity: machine.memoryBytes,
    machine_id: machine.machineId,
    system_uuid: machine.systemUuid,
    hugepages: hugePages(machine.hugePages),
    filesystems: filesystems.map(filesystemInfo),
    disk_map: machine.disks,
    network_devices: machine.networkDevices,
    topology: topologyOf(machine),
    cloud_provider: "Unknown",
    instance_type: "Unknown",
  };
}

function filesystemInfo({ device, type, space }: MountedFilesystem): Json {
  return {
    device,
    capacity: space.capacityBytes,
    type: type === "tmpfs" || type === "zfs" ? type : "vfs",
    inodes: space.inodes,
    has_inodes: true,
  };
}

/** Page sizes are in KiB, and in the order of their names. */
function hugePages(pools: MachineDescription["hugePages"]): readonly Json[] {
  return pools
    .map(({ pageBytes, pages }) => ({ page_size: pageBytes / 1024, num_pages: pages }))
    .sort((a, b) => (String(a.page_size) < String(b.page_size) ? -1 : 1));
}

/** Caches above level 2 belong to the NUMA node if all its threads share them, else to their cores. */
function topologyOf({ topology, caches, coreIds }: MachineDescription): readonly Json[] {
  return topology.nodes.map(({ id, memoryBytes, hugePages: pools, distances }) => {
    const own = topology.cpus.filter(({ numa }) => numa === id);
    const threadsOf = (core: number) => own.filter((one) => one.core === core);
    const cores = [...new Set(own.map(({ core }) => core))];
    const shared = new Map<string, Json>();
    const shown = cores.map((core) => {
      const threads = threadsOf(core);
      const found = caches.get(core) ?? [];
      const ofCore = found.filter(({ level, cpus }) => level <= 2 && cpus === threads.length);
      const uncore = found.filter(({ level, cpus }) => level > 2 && cpus !== own.length);
      for (const cache of found) {
        if (cache.level > 2 && cache.cpus === own.length) shared.set(JSON.stringify(cache), cacheJson(cache));
      }
      return {
        core_id: coreIds.get(core) ?? core,
        thread_ids: threads.map(({ cpu }) => cpu),
        caches: ofCore.map(cacheJson),
        uncore_caches: uncore.length === 0 ? null : uncore.map(cacheJson),
        socket_id: threads[0]?.socket ?? 0,
      };
    });
    return {
      node_id: id,
      memory: memoryBytes,
      hugepages: hugePages(pools),
      cores: shown,
      caches: [...shared.values()],
      distances,
    };
  });
}

function cacheJson({ id, size, type, level }: { id: number; size: number; type: string; level: number }): Json {
  return { id, size, type, level };
}
