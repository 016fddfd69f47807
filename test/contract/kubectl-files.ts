/** Manifests that the script of kubectl commands names by file. */
export const FILES: Readonly<Record<string, string>> = {
  "settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: shop}
data:
  color: red
  size: "10"
`,
  "settings-blue.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: shop}
data:
  color: blue
`,
  "owned.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
data:
  word: one
  other: same
`,
  "owned-two.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
data:
  word: two
`,
  "web.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, tier: front}
spec:
  nodeSelector: {none: such}
  containers:
  - name: web
    image: example.com/web:1
    ports: [{name: http, containerPort: 80}]
    env: [{name: A, value: "1"}]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
    livenessProbe: {httpGet: {path: /live, port: http}}
    volumeMounts: [{name: config, mountPath: /config}]
  volumes:
  - name: config
    configMap: {name: settings}
`,
  "two.yaml": `apiVersion: v1
kind: Secret
metadata: {name: two}
stringData: {pass: word}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: two}
`,
  "claim.yaml": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: none-such
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`,
  "service.yaml": `apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  clusterIP: None
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`,
  "deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 0
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: api, image: "example.com/api:1"}
`,
  "cron.yaml": `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: job, image: "example.com/job:1"}]
`,
  "bad-many.yaml": `apiVersion: v1
kind: Pod
metadata: {name: Bad_Name, labels: {"a b": c}}
spec:
  restartPolicy: Sometimes
  containers:
  - {name: "", image: "", imagePullPolicy: Now}
  - {name: x, image: y, ports: [{containerPort: 99999}], resources: {requests: {cpu: 2}, limits: {cpu: 1}}}
  volumes: [{name: v}]
`,
  "bad-field.yaml": `apiVersion: v1
kind: Pod
metadata: {name: typo}
spec:
  hostNetwrk: true
  containers: [{name: x, image: y, imag: z}]
`,
  "bad-type.yaml": `apiVersion: v1
kind: Pod
metadata: {name: typed}
spec:
  containers: [{name: x, image: y, ports: [{containerPort: "eighty"}]}]
`,
  "bad-kind.yaml": `apiVersion: example.com/v1
kind: Gadget
metadata: {name: gadget}
`,
  "list.yaml": `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: list-one}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: list-two}}
`,
  "bad-yaml.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: broken
`,
  "bad-immutable.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
immutable: true
data: {a: "2"}
`,
  "fixed.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
immutable: true
data: {a: "1"}
`,
  "kustomization.yaml": `namespace: shop
namePrefix: k-
commonAnnotations: {made: by-kustomize}
resources: [fixed.yaml]
configMapGenerator:
- name: generated
  literals: [a=b]
`,
};
