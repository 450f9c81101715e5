/* task.h - see FreeRTOS.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
TickType_t xTaskGetTickCount(void);
void vTaskDelay(const TickType_t ticks);
