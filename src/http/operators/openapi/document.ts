import { PATHS, type PathItem } from './paths';
import { SCHEMAS, type Schema } from './schemas';

/** An OpenAPI 3.1 document, as far as it is used here. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, { readonly type: 'http'; readonly scheme: 'bearer' }>>;
  };
}

/** The description of the operators' API. */
export const OPENAPI: OpenApiDocument = {
  openapi: '3.1.0',
  info: {
    title: "weir: the operators' API",
    version: '1',
    description: 'See, explain and change limits while the service runs. The version is selected by the header Accept.',
  },
  servers: [{ url: '/api' }],
  paths: PATHS,
  components: {
    schemas: SCHEMAS,
    securitySchemes: { operatorToken: { type: 'http', scheme: 'bearer' } },
  },
};
