// Imported first by every script: refuses an old Node in one line, in syntax that an old Node can read.
const numbers = process.versions.node.split(".").map(Number);
if (numbers[0] < 20 || (numbers[0] === 20 && numbers[1] < 19)) {
  process.stderr.write("kubelet-ts needs Node 20.19 or newer (24 is best); this is " + process.version + ".\n");
  process.exit(1);
}
