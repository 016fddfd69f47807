/** An error that the user can fix: shown in one line, without a stack. */
export class CliError extends Error {
  override readonly name = "CliError";
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** The reader of the output has closed it: the command ends quietly. */
export class ReaderLeft extends Error {
  override readonly name = "ReaderLeft";
}
