/* scripts.c - prints the scripts of command.c as a table of Lua, for scripts.lua. Compiled once with all features and once
   with REDLOCK_MINIMAL.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "command.c"

#include <stdio.h>

int main(void)
{
    static const struct {
        const char *name;
        unsigned command;
    } scripts[] = {{"delete", RL_DELETE},   {"take", RL_TAKE},     {"fence", RL_FENCE},
                   {"confirm", RL_CONFIRM}, {"extend", RL_EXTEND}, {"info", RL_INFO},
                   {"gate", RL_GATE},       {"leave", RL_LEAVE}};
    unsigned i;

    printf("return {\n");
    for (i = 0; i < sizeof scripts / sizeof *scripts; i++)
        printf("%s = [==[%s%s]==],\n", scripts[i].name, rl_head, rl_script_of(scripts[i].command));
    printf("label_extend = [==[%s%s]==],\n", rl_label_head, rl_extend_script);
    printf("label_delete = [==[%s%s]==],\n", rl_label_head, rl_delete_script);
    printf("}\n");
    return 0;
}
