import { check } from './check';

export const operatorChecks = [
  check(['operatorToken', 'operatorTokenFile'], ({ settings, nameOf }) =>
    settings.operatorToken !== undefined && settings.operatorTokenFile !== undefined
      ? `${nameOf('operatorToken')} and ${nameOf('operatorTokenFile')} are both set; remove one of them.`
      : undefined,
  ),
];
