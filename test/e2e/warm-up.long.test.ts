import { CopiedBuild, builtProgram, damages } from './copied-build';
import { Shop } from './shop';

it('a start with a damaged code cache serves, after one line, in 20 of 20 random cases', async () => {
  const { cache } = await builtProgram();
  const damage = damages('starts');
  for (let round = 0; round < 20; round += 1) {
    using build = new CopiedBuild(damage(cache));
    await using shop = await Shop.start({ dist: build.dist });
    expect(shop.weir.output.match(/the code cache is ignored/g)).toHaveLength(1);
    expect(await shop.hit()).toBeLessThan(1_000_000);
    await shop.drain();
  }
});
