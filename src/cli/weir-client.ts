#!/usr/bin/env node
import { CLIENT } from './client/client';
import { start } from './program';

start(CLIENT);
