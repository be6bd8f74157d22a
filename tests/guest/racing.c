// SPDX-License-Identifier: GPL-2.0
/* A data race that KCSAN must report. For tests only. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

static struct task_struct *racers[2];
static unsigned int tally;

static noinline void racing_add(void)
{
	tally++;
}

static int racing_run(void *unused)
{
	while (!kthread_should_stop()) {
		int i;

		for (i = 0; i < 1000; i++)
			racing_add();
		usleep_range(100, 200);
	}
	return 0;
}

static void racing_stop(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(racers); i++)
		if (!IS_ERR_OR_NULL(racers[i]))
			kthread_stop(racers[i]);
}

static int __init racing_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i] = kthread_run(racing_run, NULL, "racing/%u", i);
		if (IS_ERR(racers[i])) {
			racing_stop();
			return -ENOMEM;
		}
	}
	return 0;
}

static void __exit racing_exit(void)
{
	racing_stop();
	pr_info("%u\n", tally);
}

module_init(racing_init);
module_exit(racing_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A race for the debug kernel to find");
