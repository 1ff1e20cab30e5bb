export default class ReportsController {
  index() {
    return [{ name: 'sales' }];
  }
}
