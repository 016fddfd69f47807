// Loaded into an agent by `node --require`: its wall clock is off by the milliseconds that the file CLOCK_OFFSET_FILE
// holds, as after somebody set the machine's clock. The monotonic clock is not touched, as on a real machine.
const { readFileSync, watchFile } = require("node:fs");

const file = process.env.CLOCK_OFFSET_FILE;
const realNow = Date.now;
let offset = 0;
function read() {
  try {
    offset = Number(readFileSync(file, "utf8"));
  } catch {
    offset = 0;
  }
}

if (file !== undefined) {
  read();
  watchFile(file, { interval: 100, persistent: false }, read);
  const RealDate = Date;
  class ShiftedDate extends RealDate {
    constructor(...args) {
      if (args.length === 0) super(realNow() + offset);
      else super(...args);
    }
    static now() {
      return realNow() + offset;
    }
  }
  globalThis.Date = ShiftedDate;
}
