/** Something that the user can mend: shown in one line, without a stack. */
export class CliError extends Error {
  override readonly name = "CliError";
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** The reader of our output has left: the command ends quietly. */
export class ReaderLeft extends Error {
  override readonly name = "ReaderLeft";
}
