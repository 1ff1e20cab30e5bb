import { OperatorsController } from '../operators-controller';
import { invalid, parametersOf } from '../query';

const DEFAULT_TOP = 20;
const MAX_TOP = 1_000;

/** `/api/offenders` */
export class OffendersController extends OperatorsController {
  async index(): Promise<object> {
    this.authorize('private');
    const { domain, top = String(DEFAULT_TOP) } = parametersOf(this.ctx, ['domain', 'top']);
    const limit = /^[1-9]\d{0,3}$/.test(top) ? Number(top) : Infinity;
    if (limit > MAX_TOP) throw invalid(`top must be a whole number from 1 to ${MAX_TOP}`);
    return { offenders: await this.operator.offenders({ domain, limit }) };
  }
}
