// Rules of this project that oxlint has none for.

function privateNames(context) {
  function check(node) {
    if (node.accessibility !== 'private' || node.kind === 'constructor') return;
    context.report({ node, message: 'Use a #private name: it is private at run time too.' });
  }
  return { PropertyDefinition: check, MethodDefinition: check, TSParameterProperty: check };
}

const SUBJECTS = new Set(['Subject', 'BehaviorSubject', 'ReplaySubject', 'AsyncSubject']);

function privateSubjects(context) {
  return {
    PropertyDefinition({ key, value }) {
      if (key.type === 'PrivateIdentifier' || value?.type !== 'NewExpression' || !SUBJECTS.has(value.callee.name))
        return;
      context.report({ node: key, message: 'A Subject is private; expose it with asObservable().' });
    },
  };
}

function keptSubscriptions(context) {
  return {
    ExpressionStatement({ expression }) {
      if (expression.type !== 'CallExpression' || expression.callee.property?.name !== 'subscribe') return;
      context.report({
        node: expression,
        message: 'Keep the Subscription: add it to one that its owner ends, or compose the stream.',
      });
    },
  };
}

const WIDTH = 120;
const DIRECTIVE = /^\s*(?:oxlint|eslint)-/;

// Prettier wraps code, but leaves comments as they are.
function commentWidth({ report, sourceCode }) {
  return {
    Program() {
      for (const { value, loc } of sourceCode.getAllComments()) {
        if (DIRECTIVE.test(value)) continue;
        for (let { line } = loc.start; line <= loc.end.line; line += 1) {
          const text = sourceCode.lines[line - 1];
          const column = line === loc.end.line ? loc.end.column : text.length;
          if (column <= WIDTH) continue;
          report({
            loc: { start: { line, column: WIDTH }, end: { line, column } },
            message: `A line of a comment has at most ${WIDTH} columns.`,
          });
        }
      }
    },
  };
}

const RIDDLE = /^[\s*]*(?<words>The same|That of|Those|Theirs|As there|It|They|These)\b/;
// In the code of a function, where comments are of single lines, these words may belong to the line below.
const RIDDLE_OF_BLOCK = /^[\s*]*(?<words>Its|Of|Or|Such)\b/;

// Comments of single lines that follow each other are one comment.
function commentSubject({ report, sourceCode }) {
  function beginsLine({ loc }) {
    return sourceCode.lines[loc.start.line - 1].slice(0, loc.start.column).trim() === '';
  }
  function continues(comment, before) {
    return (
      [comment, before].every((each) => each?.type === 'Line' && beginsLine(each)) &&
      comment.loc.start.line === before.loc.start.line + 1
    );
  }
  return {
    Program() {
      const comments = sourceCode.getAllComments();
      for (const [index, comment] of comments.entries()) {
        const match = RIDDLE.exec(comment.value) ?? (comment.type === 'Block' && RIDDLE_OF_BLOCK.exec(comment.value));
        const words = match?.groups?.words;
        if (words === undefined || continues(comment, comments[index - 1])) continue;
        report({
          loc: comment.loc,
          message: `A comment names its subject instead of beginning with "${words}": it has to be understood alone.`,
        });
      }
    },
  };
}

export default {
  meta: { name: 'house-style' },
  rules: {
    'private-names': { create: privateNames },
    'private-subjects': { create: privateSubjects },
    'kept-subscriptions': { create: keptSubscriptions },
    'comment-width': { create: commentWidth },
    'comment-subject': { create: commentSubject },
  },
};
