// SPDX-License-Identifier: GPL-2.0
/* One bug of each kind that the debug kernel must report. For tests only. */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static noinline void broken_leak(void)
{
	int *lost = kmalloc(1000, GFP_KERNEL);

	WRITE_ONCE(*lost, 1);	/* prevent a tail call, so that the backtrace has this function */
}

static noinline void broken_sleep(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static noinline void broken_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static enum hrtimer_restart broken_expired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static noinline void broken_timer(void)
{
	struct hrtimer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = broken_expired;
	hrtimer_start(timer, NSEC_PER_SEC, HRTIMER_MODE_REL);
	kfree(timer);
}

static noinline void broken_shift(int by)
{
	OPTIMIZER_HIDE_VAR(by);
	pr_info("%d\n", 1 << by);
}

static noinline void broken_use(void)
{
	int *freed = kmalloc(1000, GFP_KERNEL);

	kfree(freed);
	OPTIMIZER_HIDE_VAR(freed);
	pr_info("%d\n", READ_ONCE(*freed));
}

static int __init broken_init(void)
{
	int i;

	for (i = 0; i < 10; i++)
		broken_leak();
	broken_sleep();
	broken_timer();
	broken_shift(40);
	broken_order();
	broken_use();	/* last, because it switches lockdep off */
	return 0;
}

static void __exit broken_exit(void)
{
}

module_init(broken_init);
module_exit(broken_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Mistakes for the debug kernel to find");
