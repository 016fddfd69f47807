import { InterceptingCall } from "@grpc/grpc-js";

/** A call of grpc-js that receives a message only on demand; by itself grpc-js receives 16 ahead, whatever their size. */
export class ReadOnDemandCall extends InterceptingCall {
  private isDemanded = false;
  private isRequested = false;

  /** Receives one message more. */
  demand(): void {
    this.isDemanded = true;
    this.read();
  }

  /** Called by grpc-js whenever it would receive another message. */
  override startRead(): void {
    this.isRequested = true;
    this.read();
  }

  private read(): void {
    if (!this.isDemanded || !this.isRequested) return;
    this.isDemanded = false;
    this.isRequested = false;
    super.startRead();
  }
}
