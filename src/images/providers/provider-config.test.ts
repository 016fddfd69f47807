import assert from "node:assert/strict";
import { test } from "node:test";
import { formatProblem } from "../../model/problem.ts";
import { decodeProviderConfig } from "./provider-config.ts";

const EXEC = "credentialprovider.kubelet.k8s.io";
const provider = {
  name: "registry-helper",
  apiVersion: `${EXEC}/v1`,
  matchImages: ["*.example.com:5000/team", "registry.io"],
  defaultCacheDuration: "10m",
};
const token = { serviceAccountTokenAudience: "registry", cacheType: "Token", requireServiceAccount: true };
const config = (...providers: readonly unknown[]): object => ({
  apiVersion: "kubelet.config.k8s.io/v1",
  kind: "CredentialProviderConfig",
  providers,
});
const decode = (value: unknown, allowsTokens = true) => decodeProviderConfig(value, { allowsTokens });

test("a provider with everything", () => {
  const env = [{ name: "A", value: "1" }];
  const tokenAttributes = {
    ...token,
    requiredServiceAccountAnnotationKeys: ["example.com/role"],
    optionalServiceAccountAnnotationKeys: ["Zone"],
  };
  const { providers, problems } = decode(config({ ...provider, args: ["get"], env, tokenAttributes }));
  assert.deepEqual(problems, []);
  assert.deepEqual(providers, [
    {
      name: "registry-helper",
      apiVersion: `${EXEC}/v1`,
      matchImages: provider.matchImages,
      defaultCacheMs: 600_000,
      args: ["get"],
      env: { A: "1" },
      token: {
        audience: "registry",
        cacheType: "Token",
        isRequired: true,
        requiredAnnotations: ["example.com/role"],
        optionalAnnotations: ["Zone"],
      },
    },
  ]);
});

for (const version of ["v1", "v1beta1", "v1alpha1"]) {
  test(`${version} of the configuration and of the protocol are read`, () => {
    const value = config({ ...provider, apiVersion: `${EXEC}/${version}` });
    assert.deepEqual(decode({ ...value, apiVersion: `kubelet.config.k8s.io/${version}` }).problems, []);
  });
}

const right: readonly { name: string; more: object }[] = [
  { name: "a cache duration of 0s, which caches nothing", more: { defaultCacheDuration: "0s" } },
  {
    name: "pods without a service account",
    more: {
      tokenAttributes: { ...token, requireServiceAccount: false, optionalServiceAccountAnnotationKeys: ["a"] },
    },
  },
];
for (const { name, more } of right) {
  test(`allowed: ${name}`, () => assert.deepEqual(decode(config({ ...provider, ...more })).problems, []));
}

const wrong: readonly { name: string; value: unknown; says: RegExp; allowsTokens?: boolean }[] = [
  { name: "no object", value: "text", says: /must be an object \("text"\)/ },
  {
    name: "another kind",
    value: { ...config(provider), kind: "Pod" },
    says: /^kind: is not supported \("Pod"\); use Cred/,
  },
  {
    name: "another version",
    value: { ...config(provider), apiVersion: "v1" },
    says: /^apiVersion: .*"v1".*use one of/,
  },
  { name: "no name", value: config({ ...provider, name: "" }), says: /^providers\[0\]\.name: is not a file name/ },
  { name: "a path", value: config({ ...provider, name: "../sh" }), says: /name: is not a file name \("\.\.\/sh"\)/ },
  { name: "dots", value: config({ ...provider, name: ".." }), says: /name: is not a file name/ },
  { name: "a space", value: config({ ...provider, name: "a b" }), says: /name: is not a file name/ },
  {
    name: "another protocol",
    value: config({ ...provider, apiVersion: "v2" }),
    says: /^providers\[0\]\.apiVersion: is not supported \("v2"\); use one of .*v1beta1/,
  },
  { name: "no image", value: config({ ...provider, matchImages: [] }), says: /matchImages: must not be empty/ },
  {
    name: "no pattern",
    value: config({ ...provider, matchImages: ["ok.io", "a b"] }),
    says: /matchImages\[1\]: is not an image pattern \("a b"\); use a host/,
  },
  {
    name: "a port that is none",
    value: config({ ...provider, matchImages: ["a.io:http"] }),
    says: /is not an image pattern/,
  },
  {
    name: "no cache duration",
    value: config({ ...provider, defaultCacheDuration: undefined }),
    says: /defaultCacheDuration: is required; set a duration/,
  },
  {
    name: "a negative one",
    value: config({ ...provider, defaultCacheDuration: "-1s" }),
    says: /must not be negative \("-1s"\)/,
  },
  { name: "a slip", value: config({ ...provider, matchImage: [] }), says: /matchImage: is not known; use matchImages/ },
  { name: "an unknown field", value: config({ ...provider, zzz: 1 }), says: /zzz: is not known; remove it$/ },
  {
    name: "an env name",
    value: config({ ...provider, env: [{ name: "A=B", value: "s3cret" }] }),
    says: /env\[0\]\.name/,
  },
  {
    name: "tokens without the gate",
    value: config({ ...provider, tokenAttributes: token }),
    allowsTokens: false,
    says: /tokenAttributes: is not allowed; turn on the feature gate KubeletServiceAccountTokenForCredentialProviders/,
  },
  {
    name: "tokens with an old protocol",
    value: config({ ...provider, apiVersion: `${EXEC}/v1beta1`, tokenAttributes: token }),
    says: /tokenAttributes: is not allowed; set apiVersion to credentialprovider.kubelet.k8s.io\/v1$/,
  },
  {
    name: "tokens in an old file",
    value: { ...config({ ...provider, tokenAttributes: token }), apiVersion: "kubelet.config.k8s.io/v1beta1" },
    says: /tokenAttributes: is not known/,
  },
  {
    name: "no audience",
    value: config({ ...provider, tokenAttributes: { ...token, serviceAccountTokenAudience: "" } }),
    says: /serviceAccountTokenAudience: is required/,
  },
  {
    name: "no word on accounts",
    value: config({ ...provider, tokenAttributes: { ...token, requireServiceAccount: undefined } }),
    says: /requireServiceAccount: is required; set true or false/,
  },
  {
    name: "no cache type",
    value: config({ ...provider, tokenAttributes: { ...token, cacheType: "Pod" } }),
    says: /cacheType: is not supported \("Pod"\); use one of ServiceAccount, Token/,
  },
  {
    name: "required annotations of no account",
    value: config({
      ...provider,
      tokenAttributes: { ...token, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: ["a"] },
    }),
    says: /requiredServiceAccountAnnotationKeys: is not allowed.*set requireServiceAccount to true/,
  },
  {
    name: "a key twice",
    value: config({ ...provider, tokenAttributes: { ...token, optionalServiceAccountAnnotationKeys: ["a", "a"] } }),
    says: /optionalServiceAccountAnnotationKeys\[1\]: is there twice/,
  },
  {
    name: "a key both required and optional",
    value: config({
      ...provider,
      tokenAttributes: {
        ...token,
        requiredServiceAccountAnnotationKeys: ["a"],
        optionalServiceAccountAnnotationKeys: ["a"],
      },
    }),
    says: /optionalServiceAccountAnnotationKeys: has "a", which is required/,
  },
];
for (const { name, value, says, allowsTokens } of wrong) {
  test(`refused: ${name}`, () => {
    const problems = decode(value, allowsTokens).problems.map(formatProblem);
    assert.ok(
      problems.some((problem) => says.test(problem)),
      problems.join("\n"),
    );
    assert.ok(!problems.join().includes("s3cret"));
  });
}
