import { OperatorsController } from '../operators-controller';

/** `/api/settings` */
export class SettingsController extends OperatorsController {
  async show(): Promise<object> {
    return { settings: await this.operator.settings() };
  }
}
