import { posix } from 'node:path';

/** How a controller's file exports its class. */
export interface ControllerSource {
  readonly form: 'default' | 'named' | 'module.exports';
  readonly className: string;
  /** The relative modules that the file imports: they show how the project writes such imports. */
  readonly relativeImports: readonly string[];
}

/** The forms in which a class is exported, at the beginning of a line; the name may be missing. */
const DEFAULT =
  /^export\s+default\s+(?:@[\w.]+(?:\([^)\n]*\))?\s+)*(?:abstract\s+)?(?:class\b[ \t]*)?(?!extends\b)([\w$]+)?/m;
const NAMED = /^export\s+(?:abstract\s+)?class\s+([\w$]+)/gm;
const LISTED = /^export\s*\{([^}]*)\}\s*;?\s*$/gm;
const WHOLE_MODULE = /^module\.exports\s*=\s*(?:class\b[ \t]*(?!extends\b)([\w$]+)?|([\w$]+)\s*;?\s*$)/m;
const RELATIVE_IMPORT = /^(?:import|export)\b[^'"]*['"](\.[^'"]*)['"]/gm;

/**
 * Reads how a file exports its class, without running it.
 *
 * @param text JavaScript or TypeScript
 * @param fallbackName the name of a class that has none
 * @throws Error that says what is missing
 */
export function readControllerSource(text: string, fallbackName: string): ControllerSource {
  const relativeImports = Array.from(text.matchAll(RELATIVE_IMPORT), ([, specifier]) => specifier!);
  const whole = WHOLE_MODULE.exec(text);
  if (whole !== null)
    return { form: 'module.exports', className: whole[1] ?? whole[2] ?? fallbackName, relativeImports };
  const byDefault = DEFAULT.exec(text);
  if (byDefault !== null) return { form: 'default', className: byDefault[1] ?? fallbackName, relativeImports };
  const listed = Array.from(text.matchAll(LISTED), ([, names]) => names!.split(',').map((name) => name.trim())).flat();
  const classes = [
    ...Array.from(text.matchAll(NAMED), ([, name]) => name!),
    ...listed.filter(
      (name) =>
        /^[\w$]+$/.test(name) && text.match(new RegExp(`^(?:abstract )?class ${name.replaceAll('$', '\\$')}\\b`, 'm')),
    ),
  ];
  const [only] = classes;
  if (only === undefined) throw new Error('it exports no class in a form that is known here: see the README');
  if (classes.length > 1) throw new Error(`it exports more than one class: ${classes.join(', ')}`);
  return { form: 'named', className: only, relativeImports };
}

export interface Subclass {
  readonly source: ControllerSource;
  /** The version of the class that is extended. */
  readonly version: number;
  /** The path from the new file to the extended one, with its extension: `../v1/foo-controller.ts`. */
  readonly path: string;
  /** Relative modules that other controllers import, for a file that imports none. */
  readonly siblingImports: readonly string[];
}

/** The text of a controller that extends the one of the previous version and changes nothing. */
export function subclassText({ source, version, path, siblingImports }: Subclass): string {
  const { form, className, relativeImports } = source;
  const base = `${className}V${version}`;
  const heritage = `class ${className} extends ${base} {}\n`;
  if (form === 'module.exports') {
    return `const ${base} = require('${path.replace(/\.js$/, '')}');\n\nmodule.exports = ${heritage.replace('\n', ';\n')}`;
  }
  const from = importPath(path, relativeImports.length > 0 ? relativeImports : siblingImports);
  return form === 'default'
    ? `import ${base} from '${from}';\n\nexport default ${heritage}`
    : `import { ${className} as ${base} } from '${from}';\n\nexport ${heritage}`;
}

/** The extension that a compiled TypeScript file has, by that of its source. */
const COMPILED: Readonly<Record<string, string>> = { '.ts': '.js', '.mts': '.mjs', '.cts': '.cjs' };

/**
 * How a module is imported. JavaScript is imported with its extension. For TypeScript the project decides: with the extension of
 * the source (for Node, which removes types), without one (for bundlers), otherwise with that of the compiled file, which every
 * setting of the compiler accepts.
 */
function importPath(path: string, examples: readonly string[]): string {
  const extension = posix.extname(path);
  const compiled = COMPILED[extension];
  if (compiled === undefined) return path;
  const without = path.slice(0, -extension.length);
  const extensions = new Set(examples.map((example) => posix.extname(example)));
  if (extensions.has(extension)) return path;
  return extensions.size > 0 && !extensions.has(compiled) && extensions.has('') ? without : without + compiled;
}
