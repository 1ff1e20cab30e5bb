import { posix } from 'node:path';

/** How a controller's file exports its class. */
export interface ControllerSource {
  readonly form: 'default' | 'named' | 'module.exports';
  readonly className: string;
  /** The relative modules that the file imports: they show how the project writes such imports. */
  readonly relativeImports: readonly string[];
}

/** The forms in which a class is exported, at the beginning of a line; the first two may lack its name. */
const DEFAULT = /^export\s+default\s+(?:abstract\s+)?(?:class\b[ \t]*)?(?!extends\b)([\w$]+)?/m;
const WHOLE_MODULE = /^module\.exports\s*=\s*(?:class\b[ \t]*(?!extends\b)([\w$]+)?|([\w$]+)\s*;?\s*$)/m;
const NAMED = /^export\s+(?:abstract\s+)?class\s+([\w$]+)/gm;
const LISTED = /^export\s*\{([^}]*)\}/gm;
const CLASS = /^(?:abstract\s+)?class\s+([\w$]+)/gm;
const RELATIVE_IMPORT = /^(?:import|export)\b[^'"]*['"](\.[^'"]*)['"]/gm;

/**
 * Reads how a file exports its class, without running it.
 *
 * @param text JavaScript or TypeScript
 * @param fallbackName the name of a class that has none
 * @throws Error that says what is missing
 */
export function readControllerSource(text: string, fallbackName: string): ControllerSource {
  const relativeImports = captured(text, RELATIVE_IMPORT);
  const whole = WHOLE_MODULE.exec(text);
  if (whole !== null) {
    return { form: 'module.exports', className: whole[1] ?? whole[2] ?? fallbackName, relativeImports };
  }
  const byDefault = DEFAULT.exec(text);
  if (byDefault !== null) return { form: 'default', className: byDefault[1] ?? fallbackName, relativeImports };
  const listed = captured(text, LISTED).flatMap((names) => names.split(',').map((name) => name.trim()));
  const names = [...captured(text, NAMED), ...captured(text, CLASS).filter((name) => listed.includes(name))];
  const [only] = names;
  if (only === undefined) throw new Error('it exports no class in a form that is known here: see the README');
  if (names.length > 1) throw new Error(`it exports more than one class: ${names.join(', ')}`);
  return { form: 'named', className: only, relativeImports };
}

/** What the first group of a pattern captures, each time. */
function captured(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, group]) => group!);
}

export interface Extended {
  readonly version: number;
  /** The path from the new file to the extended one, with its extension: `../v1/foo-controller.ts`. */
  readonly extended: string;
  /** Relative modules that any controller imports, for a file that imports none. */
  readonly allImports: readonly string[];
}

/** The text of a controller that extends the one of the previous version and changes nothing. */
export function subclassText(source: ControllerSource, { version, extended, allImports }: Extended): string {
  const { form, className, relativeImports } = source;
  const base = `${className}V${version}`;
  const subclass = `class ${className} extends ${base} {}`;
  if (form === 'module.exports') {
    return `const ${base} = require('${extended.replace(/\.js$/, '')}');\n\nmodule.exports = ${subclass};\n`;
  }
  const from = importPath(extended, relativeImports.length > 0 ? relativeImports : allImports);
  return form === 'default'
    ? `import ${base} from '${from}';\n\nexport default ${subclass}\n`
    : `import { ${className} as ${base} } from '${from}';\n\nexport ${subclass}\n`;
}

/**
 * How a module is imported. JavaScript is imported with its extension. For TypeScript the project decides: with the
 * extension of the source (for Node, which removes types), without one (for bundlers), otherwise with that of the
 * compiled file, which every setting of the compiler accepts.
 */
function importPath(path: string, examples: readonly string[]): string {
  const extension = posix.extname(path);
  const extensions = new Set(examples.map((example) => posix.extname(example)));
  if (!extension.endsWith('ts') || extensions.has(extension)) return path;
  const compiled = extension.replace('ts', 'js');
  const without = path.slice(0, -extension.length);
  return extensions.has('') && !extensions.has(compiled) ? without : without + compiled;
}
