/** Facts about the machine that do not change while the agent runs. */
export interface MachineFacts {
  readonly nodeName: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly addresses: readonly string[];
}
