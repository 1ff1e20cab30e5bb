// Must be imported before everything else. With DEBUG set, the Redis client writes every command with its arguments to standard
// error, bypassing the log: AUTH with its password, and the keys of counters.
delete process.env['DEBUG'];
