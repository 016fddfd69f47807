/** An object of each kind that both servers serve, as a user would write it. */
const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "nginx:1.27", ports: [{ containerPort: 80 }] }] },
};
const once = { ...template, spec: { ...template.spec, restartPolicy: "Never" } };
const selector = { matchLabels: { app: "web" } };

export interface SampleObject {
  /** Path of the collection. */
  readonly path: string;
  readonly object: Readonly<Record<string, unknown>> & { readonly metadata: Readonly<Record<string, unknown>> };
}

const core = "/api/v1/namespaces/suite";

export const SAMPLES: Readonly<Record<string, SampleObject>> = {
  configMap: {
    path: `${core}/configmaps`,
    object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "cm", labels: { a: "b" } }, data: { k: "v" } },
  },
  secret: {
    path: `${core}/secrets`,
    object: { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { p: "w" }, data: { q: "eA==" } },
  },
  pod: {
    path: `${core}/pods`,
    object: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "pod", labels: { app: "web" } },
      spec: {
        initContainers: [{ name: "init", image: "busybox", command: ["true"] }],
        containers: [
          {
            name: "web",
            image: "nginx",
            env: [
              { name: "A", value: "1" },
              { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
              { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
            ],
            ports: [{ containerPort: 80, name: "http" }],
            resources: { limits: { cpu: "0.5", memory: "1024Mi" } },
            readinessProbe: { httpGet: { port: "http" } },
            livenessProbe: { exec: { command: ["true"] }, periodSeconds: 5 },
            volumeMounts: [{ name: "data", mountPath: "/data" }],
            lifecycle: { preStop: { exec: { command: ["sleep", "1"] } } },
          },
        ],
        volumes: [
          { name: "data" },
          { name: "cm", configMap: { name: "cm" } },
          { name: "host", hostPath: { path: "/tmp" } },
          { name: "s", secret: { secretName: "s", items: [{ key: "p", path: "p" }] } },
        ],
      },
    },
  },
  service: {
    path: `${core}/services`,
    object: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "svc" },
      spec: { selector: { app: "web" }, ports: [{ port: 80 }], clusterIP: "10.96.7.7" },
    },
  },
  headless: {
    path: `${core}/services`,
    object: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "headless" },
      spec: { selector: { app: "web" }, clusterIP: "None", ports: [{ port: 80, name: "http", targetPort: "http" }] },
    },
  },
  nodePort: {
    path: `${core}/services`,
    object: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "np" },
      spec: {
        type: "NodePort",
        clusterIP: "10.96.7.8",
        ports: [{ port: 80, nodePort: 30_123 }],
        sessionAffinity: "ClientIP",
      },
    },
  },
  endpoints: {
    path: `${core}/endpoints`,
    object: {
      apiVersion: "v1",
      kind: "Endpoints",
      metadata: { name: "ep" },
      subsets: [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 80 }] }],
    },
  },
  claim: {
    path: `${core}/persistentvolumeclaims`,
    object: {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "claim" },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Gi" } } },
    },
  },
  volume: {
    path: "/api/v1/persistentvolumes",
    object: {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "volume" },
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/data" } },
    },
  },
  node: {
    path: "/api/v1/nodes",
    object: {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node", labels: { "node-role.kubernetes.io/worker": "" } },
      spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24"] },
      status: {
        capacity: { cpu: "2", memory: "4Gi" },
        conditions: [{ type: "Ready", status: "True" }],
        addresses: [{ type: "InternalIP", address: "10.0.0.5" }],
        nodeInfo: { kubeletVersion: "v1.36.3", architecture: "amd64", kernelVersion: "6.1" },
      },
    },
  },
  account: {
    path: `${core}/serviceaccounts`,
    object: { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } },
  },
  event: {
    path: `${core}/events`,
    object: {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: "ev" },
      involvedObject: { kind: "Pod", namespace: "suite", name: "pod" },
      reason: "Tested",
      message: "it works",
      type: "Normal",
      source: { component: "suite" },
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      count: 3,
    },
  },
  newEvent: {
    path: "/apis/events.k8s.io/v1/namespaces/suite/events",
    object: {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "new-ev" },
      eventTime: "2026-01-01T00:00:00.123456Z",
      regarding: { kind: "Pod", namespace: "suite", name: "pod" },
      reason: "Tested",
      action: "Testing",
      note: "it works",
      type: "Normal",
      reportingController: "suite.example.com/controller",
      reportingInstance: "suite-1",
    },
  },
  deployment: {
    path: "/apis/apps/v1/namespaces/suite/deployments",
    object: { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec: { selector, template } },
  },
  replicaSet: {
    path: "/apis/apps/v1/namespaces/suite/replicasets",
    object: { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web" }, spec: { selector, template } },
  },
  statefulSet: {
    path: "/apis/apps/v1/namespaces/suite/statefulsets",
    object: {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "web" },
      spec: {
        selector,
        template,
        serviceName: "headless",
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
          },
        ],
      },
    },
  },
  daemonSet: {
    path: "/apis/apps/v1/namespaces/suite/daemonsets",
    object: { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "web" }, spec: { selector, template } },
  },
  revision: {
    path: "/apis/apps/v1/namespaces/suite/controllerrevisions",
    object: {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: { name: "web-1" },
      data: { spec: { template } },
      revision: 1,
    },
  },
  job: {
    path: "/apis/batch/v1/namespaces/suite/jobs",
    object: { apiVersion: "batch/v1", kind: "Job", metadata: { name: "job" }, spec: { template: once } },
  },
  cronJob: {
    path: "/apis/batch/v1/namespaces/suite/cronjobs",
    object: {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "cron" },
      spec: { schedule: "*/5 * * * *", jobTemplate: { spec: { template: once } } },
    },
  },
  lease: {
    path: "/apis/coordination.k8s.io/v1/namespaces/suite/leases",
    object: {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "lease" },
      spec: { holderIdentity: "me", leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.500000Z" },
    },
  },
  slice: {
    path: "/apis/discovery.k8s.io/v1/namespaces/suite/endpointslices",
    object: {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "slice", labels: { "kubernetes.io/service-name": "svc" } },
      addressType: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
    },
  },
  runtimeClass: {
    path: "/apis/node.k8s.io/v1/runtimeclasses",
    object: { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "kata" }, handler: "kata" },
  },
  priorityClass: {
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    object: { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: "high" }, value: 1000 },
  },
  storageClass: {
    path: "/apis/storage.k8s.io/v1/storageclasses",
    object: { apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "fast" }, provisioner: "x/y" },
  },
  csiDriver: {
    path: "/apis/storage.k8s.io/v1/csidrivers",
    object: { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: "csi.example.com" }, spec: {} },
  },
  csiNode: {
    path: "/apis/storage.k8s.io/v1/csinodes",
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name: "node" },
      spec: { drivers: [{ name: "a.b", nodeID: "n", topologyKeys: ["zone"] }] },
    },
  },
  attachment: {
    path: "/apis/storage.k8s.io/v1/volumeattachments",
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "VolumeAttachment",
      metadata: { name: "attachment" },
      spec: { attacher: "csi.example.com", nodeName: "node", source: { persistentVolumeName: "volume" } },
    },
  },
};
