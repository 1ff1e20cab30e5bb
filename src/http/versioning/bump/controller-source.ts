import { init, parse } from 'es-module-lexer';

/** How a controller's file exports its class. */
export interface ControllerSource {
  readonly module: 'esm' | 'commonjs';
  /** The name of the export; `module.exports` for a class that is the whole CommonJS module. */
  readonly exportName: string;
  readonly className: string;
  /** The relative modules that the file imports: they show how the project writes such imports. */
  readonly relativeImports: readonly string[];
}

/**
 * Reads how a file exports its class, without running it.
 *
 * @param text JavaScript or TypeScript
 * @param fallbackName the name of a class that has none
 * @throws Error that says what is missing
 */
export async function readControllerSource(text: string, fallbackName: string): Promise<ControllerSource> {
  await init();
  const [imports, exports, , isModule] = parse(text);
  if (!isModule) return { module: 'commonjs', relativeImports: [], ...commonJsExport(text, fallbackName) };
  const names: string[] = [];
  for (const { type, name, ...rest } of exports.filter((it) => it.type !== 'reexport-all')) {
    if (rest.typeOnly) continue;
    if (name === 'default') {
      return {
        module: 'esm',
        exportName: name,
        className: defaultName(text.slice(rest.exportStart)) ?? fallbackName,
        relativeImports: relative(imports),
      };
    }
    if (type === 'direct') names.push(name);
  }
  const classes = names.length > 1 ? names.filter((name) => declaresClass(text, name)) : names;
  const [only] = classes;
  if (only === undefined) throw new Error('it exports no class');
  if (classes.length > 1) throw new Error(`it exports more than one class: ${classes.join(', ')}`);
  return { module: 'esm', exportName: only, className: only, relativeImports: relative(imports) };
}

function relative(imports: readonly { readonly specifier: string | null | undefined }[]): readonly string[] {
  return imports.flatMap(({ specifier }) => (specifier?.startsWith('.') ? [specifier] : []));
}

/** The name in `export default class Name` or `export default Name`; undefined without one. */
function defaultName(statement: string): string | undefined {
  const declaration = /^export\s+default\s+(?:@[\w.]+(?:\([^)]*\))?\s+)*(?:abstract\s+)?(?:class\b\s*)?([\w$]+)?/;
  const name = declaration.exec(statement)?.[1];
  return name === 'extends' ? undefined : name;
}

function declaresClass(text: string, name: string): boolean {
  return new RegExp(`\\bclass\\s+${name.replaceAll('$', '\\$')}\\b`).test(text);
}

/** The forms in which CommonJS exports a class, at the beginning of a line. */
const WHOLE_MODULE = /^module\.exports\s*=\s*(?:class\b\s*(?!extends\b)([\w$]+)?|([\w$]+)\s*;?\s*$)/m;
const ONE_EXPORT = /^(?:module\.)?exports\.([\w$]+)\s*=\s*(?:class\b|[\w$]+\s*;?\s*$)/gm;
const EXPORT_LIST = /^module\.exports\s*=\s*\{\s*([\w$]+)\s*,?\s*\}/m;

function commonJsExport(text: string, fallbackName: string): Pick<ControllerSource, 'exportName' | 'className'> {
  const whole = WHOLE_MODULE.exec(text);
  if (whole !== null) return { exportName: 'module.exports', className: whole[1] ?? whole[2] ?? fallbackName };
  const names = [...text.matchAll(ONE_EXPORT)].map(([, name]) => name!).filter((name) => name !== '__esModule');
  const listed = EXPORT_LIST.exec(text)?.[1];
  if (listed !== undefined) names.push(listed);
  const [only] = names;
  if (only === undefined) throw new Error('it exports no class in a form that is known here: see the README');
  if (names.length > 1) throw new Error(`it has more than one export: ${names.join(', ')}`);
  return { exportName: only, className: only === 'default' ? fallbackName : only };
}
