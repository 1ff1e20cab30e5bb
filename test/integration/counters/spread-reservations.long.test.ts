import { courseTests } from './spread-courses';

courseTests('long');
