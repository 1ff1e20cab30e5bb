// Loaded into all processes of an instance before its own code: writes the flags that each of them sets for V8.
const v8 = require('node:v8');

const { setFlagsFromString } = v8;
v8.setFlagsFromString = function reported(flags) {
  process.stderr.write(`process ${process.pid} sets ${flags}\n`);
  return setFlagsFromString(flags);
};
