#!/usr/bin/env node
import { ADMIN } from './admin/admin';
import { start } from './program';

start(ADMIN);
