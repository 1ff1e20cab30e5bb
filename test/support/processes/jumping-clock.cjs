// Loaded into a process before its program: SIGUSR2 sets its system clock ahead by two hours, and the next one back.
const { now } = Date;
let offset = 0;
Date.now = () => now() + offset;
process.on('SIGUSR2', () => {
  offset = offset === 0 ? 7_200_000 : 0;
});
