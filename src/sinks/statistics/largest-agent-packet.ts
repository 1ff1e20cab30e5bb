/**
 * Bytes that the Datadog agent reads at once from a Unix socket, of either kind, unless its `dogstatsd_buffer_size` says otherwise;
 * more would be lost there.
 */
export const LARGEST_AGENT_PACKET = 8192;
