export { type ApiOptions, api } from './api';
export type { ControllerClass } from './controllers';
export type { Api, ResourceOptions } from './declaration';
export { DeclarationError } from './errors';
export type { DeclaredRoute } from './paths';
export type { Action } from './resources';
export type { VersionedRouter } from './router';
