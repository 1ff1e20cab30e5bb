import { type Field, FieldKind } from './hpack/fields';
import type { FieldSectionDecoder } from './hpack/decoder';

const NO_CONTENT_LENGTH = -1;

/**
 * The validated header list of a request (RFC 9113, section 8.3). One object is reused for all requests: it is valid only
 * during the call that receives it.
 */
export class RequestHead {
  method = '';
  path = '';
  /** `:authority`, or `host` if there is no `:authority`; undefined if there is neither. */
  authority: string | undefined;
  /** -1 if the request has no content-length. */
  contentLength = NO_CONTENT_LENGTH;
  /** All fields in order, pseudo-header fields included. Only the first {@link count} belong to this request. */
  fields: readonly Field[] = [];
  count = 0;

  /** Reads a decoded header list. Returns false if the request is malformed. */
  read(section: FieldSectionDecoder): boolean {
    this.fields = section.fields;
    this.count = section.count;
    let method: string | undefined;
    let scheme: string | undefined;
    let path: string | undefined;
    let authority: string | undefined;
    let host: string | undefined;
    let contentLength: string | undefined;
    let regularBegan = false;
    for (let at = 0; at < section.count; at += 1) {
      const { name, value, isMalformed } = section.fields[at]!;
      if (isMalformed) return false;
      const { kind } = name;
      if (kind === FieldKind.REGULAR || kind > FieldKind.PATH) {
        regularBegan = true;
        if (kind === FieldKind.HOST) {
          if (host !== undefined) return false;
          host = value;
        } else if (kind === FieldKind.CONTENT_LENGTH) {
          if (contentLength !== undefined && contentLength !== value) return false;
          contentLength = value;
        }
        continue;
      }
      if (regularBegan) return false;
      if (kind === FieldKind.METHOD) {
        if (method !== undefined) return false;
        method = value;
      } else if (kind === FieldKind.SCHEME) {
        if (scheme !== undefined) return false;
        scheme = value;
      } else if (kind === FieldKind.PATH) {
        if (path !== undefined) return false;
        path = value;
      } else {
        if (authority !== undefined) return false;
        authority = value;
      }
    }
    if (authority !== undefined && host !== undefined && authority !== host) return false;
    if (method === 'CONNECT') {
      // Section 8.5: CONNECT has an authority, and neither a scheme nor a path.
      if (scheme !== undefined || path !== undefined || authority === undefined) return false;
    } else if (method === undefined || scheme === undefined || path === undefined) return false;

    this.method = method;
    this.path = path ?? '';
    this.authority = authority ?? host;
    this.contentLength = contentLength === undefined ? NO_CONTENT_LENGTH : Number(contentLength);
    return true;
  }
}

/** Whether a decoded header list is valid as trailers: well-formed and without pseudo-header fields (section 8.1). */
export function areTrailers(section: FieldSectionDecoder): boolean {
  for (let at = 0; at < section.count; at += 1) {
    const { name, isMalformed } = section.fields[at]!;
    if (isMalformed || (name.kind >= FieldKind.METHOD && name.kind <= FieldKind.PATH)) return false;
  }
  return true;
}
