import { type Field, FieldKind } from './hpack/field';
import type { FieldSectionDecoder } from './hpack/field-section-decoder';

const NO_CONTENT_LENGTH = -1;

/**
 * The header list of a request, checked (RFC 9113, section 8.3). One object serves all requests: it is valid only during
 * the call that it is handed to.
 */
export class RequestHead {
  method = '';
  scheme = '';
  path = '';
  /** `:authority`, or `host` where only that was sent; undefined where neither was. */
  authority: string | undefined;
  /** -1 when the request did not say. */
  contentLength = NO_CONTENT_LENGTH;
  /** All fields in order, those of HTTP/2 itself included; only the first {@link count} are this request's. */
  fields: readonly Field[] = [];
  count = 0;

  /** Takes over a decoded header list; false when it makes the request malformed. */
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
      // Section 8.5: names an authority and nothing else.
      if (scheme !== undefined || path !== undefined || authority === undefined) return false;
    } else if (method === undefined || scheme === undefined || path === undefined) return false;

    this.method = method;
    this.scheme = scheme ?? '';
    this.path = path ?? '';
    this.authority = authority ?? host;
    this.contentLength = contentLength === undefined ? NO_CONTENT_LENGTH : Number(contentLength);
    return true;
  }
}

/** Whether a decoded list may be a request's trailers: well-formed, and no pseudo-fields (section 8.1). */
export function areTrailers(section: FieldSectionDecoder): boolean {
  for (let at = 0; at < section.count; at += 1) {
    const { name, isMalformed } = section.fields[at]!;
    if (isMalformed || (name.kind >= FieldKind.METHOD && name.kind <= FieldKind.PATH)) return false;
  }
  return true;
}
