export { api } from './api';
export type { Api, ResourcesOptions } from './declaration/api-declaration';
export { DeclarationError } from './routes/declaration-error';
export type { ApiOptions } from './declaration/options';
export type { DeclaredRoute } from './routes/versioned-path';
export type { VersionedRouter } from './routes/router';
export type { Action } from './routes/actions';
export type { ControllerClass } from './controllers/controller-class';
