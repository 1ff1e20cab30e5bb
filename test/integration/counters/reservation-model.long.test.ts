import { MODEL_STORES, expectModelOn } from './model-stores';

const RUNS = { memory: 2_000, 'memory with two workers': 300, Redis: 200, 'Redis Cluster': 60 };

it.each(MODEL_STORES)('thousands of random reservations leave what a model leaves (%s)', (kind) =>
  expectModelOn(kind, RUNS[kind]),
);
