#!/usr/bin/env node
import { CHECK } from './check/check';
import { start } from './program';

start(CHECK);
