// The faults that can be made in a Lua text: `[from, to, replacement]`, with offsets in characters.

const TOKEN = /--[^\n]*|'(?:[^'\\]|\\.)*'|\d+|[A-Za-z_]\w*|\.\.|[=~<>]=|\S/gu;

const REPLACED = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '==': '~=',
  '~=': '==',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '+',
  and: 'or',
  or: 'and',
  not: '',
  true: 'false',
  false: 'true',
  break: '',
};

/** A statement on a line of its own, which the rest of the text is complete without. */
function isStatement(line) {
  const words = line.match(/\b(?:if|then|else|elseif|end|for|while|do|local|function)\b/gu) ?? [];
  return line !== '' && !line.startsWith('--') && (words.length === 0 || words.join(' ') === 'if then end');
}

export function luaFaults(text) {
  const faults = [];
  /** Where the condition begins that is being read. */
  let condition;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const end = index + token.length;
    if (token in REPLACED) faults.push([index, end, REPLACED[token]]);
    else if (/^\d/u.test(token)) faults.push([index, end, String(Number(token) + 1)]);
    else if (token.startsWith("'")) faults.push([index, end, token === "''" ? "'x'" : "''"]);
    if (token === 'if' || token === 'elseif') condition = end;
    else if (token === 'then' && condition !== undefined) {
      faults.push([condition, index, ` not (${text.slice(condition, index)}) `]);
      condition = undefined;
    }
  }
  let start = 0;
  for (const line of text.split('\n')) {
    if (isStatement(line.trim())) faults.push([start, start + line.length, '']);
    start += line.length + 1;
  }
  return faults;
}
