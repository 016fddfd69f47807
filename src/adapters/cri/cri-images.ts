import type { Abortable } from "../../lib/abort.ts";
import { type CallOptions, GrpcChannel } from "../grpc/channel.ts";
import {
  type ImageFilesystems,
  type ImagePort,
  type ImagePull,
  type PullProgress,
  type RunningPull,
  RuntimeError,
  type RuntimeImage,
} from "../runtime/port.ts";
import type { CriDeps, CriOptions } from "./cri-runtime.ts";
import { fromFilesystem, fromImage } from "./from-wire.ts";
import { imageService as rpc } from "./methods.ts";
import { ContainerdPullProgress } from "./pull-progress.ts";
import { toAuth, toSandboxConfig } from "./to-wire.ts";

/** Images behind a CRI v1 socket. On the same endpoint as `CriRuntime` both share one connection. */
export class CriImages implements ImagePort {
  private readonly channel: GrpcChannel;
  private readonly progress: ContainerdPullProgress;

  constructor(
    deps: CriDeps,
    private readonly options: CriOptions,
  ) {
    this.channel = new GrpcChannel(options.endpoint, deps.onCall, { calls: deps.calls, traced: deps.traced });
    this.progress = new ContainerdPullProgress(this.channel, { namespace: options.namespace ?? "k8s.io" });
  }

  async listImages({ signal }: Abortable): Promise<readonly RuntimeImage[]> {
    const { images } = await this.channel.unary(rpc.listImages, {}, this.limit(signal));
    return images.map(fromImage);
  }

  async imageStatus(
    image: string,
    { signal, runtimeHandler }: Abortable & { readonly runtimeHandler?: string | undefined },
  ): Promise<RuntimeImage | undefined> {
    const spec = { image, ...(runtimeHandler && { runtimeHandler }) };
    const answer = await this.channel.unary(rpc.imageStatus, { image: spec }, this.limit(signal));
    return answer.image === undefined ? undefined : fromImage(answer.image);
  }

  async pullImage(image: string, pull: ImagePull, { signal }: Abortable): Promise<string> {
    const { auth, annotations, sandbox, runtimeHandler } = pull;
    const request = {
      image: { image, annotations: { ...annotations }, ...(runtimeHandler && { runtimeHandler }) },
      ...(auth && { auth: toAuth(auth) }),
      ...(sandbox && { sandboxConfig: toSandboxConfig(sandbox) }),
    };
    try {
      return (await this.channel.unary(rpc.pullImage, request, { signal })).imageRef;
    } catch (error) {
      await this.progress.discardBroken(error);
      throw error;
    }
  }

  pullProgress(
    pulls: readonly RunningPull[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined> {
    return this.progress.read(pulls, options);
  }

  async removeImage(
    image: string,
    { signal, runtimeHandler }: Abortable & { readonly runtimeHandler?: string | undefined },
  ): Promise<void> {
    try {
      const spec = { image, ...(runtimeHandler && { runtimeHandler }) };
      await this.channel.unary(rpc.removeImage, { image: spec }, this.limit(signal));
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "NotFound") return;
      throw error;
    }
  }

  async imageFilesystems({ signal }: Abortable): Promise<ImageFilesystems> {
    const { imageFilesystems, containerFilesystems } = await this.channel.unary(
      rpc.imageFsInfo,
      {},
      this.limit(signal),
    );
    return { images: imageFilesystems.map(fromFilesystem), containers: containerFilesystems.map(fromFilesystem) };
  }

  /** Closes the connection; for tests. */
  close(): void {
    this.channel.close();
  }

  private limit(signal: AbortSignal): CallOptions {
    return { signal, timeoutMs: this.options.requestTimeoutMs.current };
  }
}
