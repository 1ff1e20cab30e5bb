// Throws an exception that nothing catches when the process receives SIGWINCH.
process.on('SIGWINCH', () => {
  throw new Error('cannot reach redis://user:hunter2@host');
});
