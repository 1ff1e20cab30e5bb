/** Why a request failed at the other end. What else it throws arrives as one with its message and without details. */
export class RequestError extends Error {
  override readonly name = 'RequestError';

  /** @param detail what the asking end needs besides the message; has to be JSON */
  constructor(
    message: string,
    readonly detail?: unknown,
  ) {
    super(message);
  }
}

/** The other process has ended, or the pipe to it is closed. */
export class ChannelClosedError extends Error {
  override readonly name = 'ChannelClosedError';

  constructor() {
    super('the other process has ended');
  }
}
