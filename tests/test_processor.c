/* processor: names of processors from files as systems of x86 and of ARM write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "probe/worker/processor.h"
#include "tests/scratch.h"

static void named(const char *text, const char *expected)
{
    char path[SCRATCH_MAX], name[64];
    processor_name(scratch_text(path, text), name, sizeof name);
    assert_string_equal(name, expected);
    scratch_remove(path);
}

static void x86_says_its_name(void **state)
{
    (void)state;
    named("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9354\nCPU part\t: 0xd0c\n",
          "AMD EPYC 9354");
}

static void arm_says_numbers(void **state)
{
    (void)state;
    named("processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
          "CPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
          "Arm Neoverse N1");
    named("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", "Arm Neoverse V2");
    named("CPU implementer\t: 0xc0\nCPU part\t: 0xac3\n", "Ampere AmpereOne");
    /* the same part of another maker */
    named("CPU implementer\t: 0x6d\nCPU part\t: 0xd49\n", "Microsoft Azure Cobalt 100");
    named("CPU implementer\t: 0x41\nCPU part\t: 0xd49\n", "Arm Neoverse N2");
}

static void kinds_of_cores_are_all_named(void **state)
{
    (void)state;
    named("CPU implementer\t: 0x41\nCPU part\t: 0xd05\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n"
          "CPU implementer\t: 0x41\nCPU part\t: 0xd0b\n",
          "Arm Cortex-A55 + Arm Cortex-A76");
    named("CPU implementer\t: 0x61\nCPU part\t: 0x022\nCPU implementer\t: 0x61\nCPU part\t: 0x023\n",
          "Apple M1 (Icestorm) + Apple M1 (Firestorm)");
}

static void unknown_numbers_stay_numbers(void **state)
{
    char name[16];
    char path[SCRATCH_MAX];
    (void)state;
    named("CPU implementer\t: 0x41\nCPU part\t: 0xd99\n", "Arm part 0xd99");
    named("CPU implementer\t: 0x61\nCPU part\t: 0x000\n", "Apple part 0x0"); /* as guests see it */
    named("CPU implementer\t: 0x77\nCPU part\t: 0x1\n", "implementer 0x77 part 0x1");
    processor_name(scratch_text(path, "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\nCPU part\t: 0xd40\n"), name,
                   sizeof name);
    assert_string_equal(name, "Arm Neoverse V2");
    scratch_remove(path);
}

static void without_a_name_it_is_the_machine(void **state)
{
    char name[64];
    (void)state;
    processor_name("/nowhere/cpuinfo", name, sizeof name);
    assert_non_null(strstr(name, " processor"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x86_says_its_name),
        cmocka_unit_test(arm_says_numbers),
        cmocka_unit_test(kinds_of_cores_are_all_named),
        cmocka_unit_test(unknown_numbers_stay_numbers),
        cmocka_unit_test(without_a_name_it_is_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
