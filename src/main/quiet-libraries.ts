// To be imported before everything else. With DEBUG set, as other programs ask for their own words, the Redis client writes
// every command with its arguments to standard error, past the log: AUTH with its password, and the keys of counters.
delete process.env['DEBUG'];
