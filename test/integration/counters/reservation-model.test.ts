import { MODEL_STORES, expectModelOn } from './model-stores';

const RUNS = { memory: 30, 'memory with two workers': 5, Redis: 5, 'Redis Cluster': 2 };

it.each(MODEL_STORES)('random reservations and other calls leave what a model leaves (%s)', (kind) =>
  expectModelOn(kind, RUNS[kind]),
);
