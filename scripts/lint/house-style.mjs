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

export default {
  meta: { name: 'house-style' },
  rules: {
    'private-names': { create: privateNames },
    'private-subjects': { create: privateSubjects },
    'kept-subscriptions': { create: keptSubscriptions },
  },
};
